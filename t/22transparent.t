# The profiler changes nothing: the same hooks in the same order, and the same bytes in every answer.

use strict;
use warnings;
use Digest::SHA qw(sha1_base64);
use File::Find ();
use Test::More;
use RpTest;

my @modules = qw(info status setenvif headers deflate filter expires env autoindex negotiation rewrite actions
    auth_basic auth_digest authn_core authn_file authz_user authz_host authz_groupfile access_compat proxy proxy_http
    cache cache_disk request reqtimeout remoteip substitute unique_id userdir vhost_alias dav dav_fs session
    session_cookie slotmem_shm);

my $users = 'alice:{SHA}' . sha1_base64('secret') . '=';

my %files = (
    'list/one.txt'      => "one\n",
    'list/two.txt'      => "two\n",
    'nego.html.en'      => "<p>hello</p>\n",
    'nego.html.de'      => "<p>guten Tag</p>\n",
    'auth/page.html'    => "<p>for users</p>\n",
    'closed/page.html'  => "<p>for nobody</p>\n",
    'compat/page.html'  => "<p>denied</p>\n",
    'htac/.htaccess'    => "Header set X-From htaccess\nSetEnvIf Request_URI . seen\n<Files closed.txt>\n"
        . "Require all denied\n</Files>\n",
    'htac/open.txt'     => "open\n",
    'htac/closed.txt'   => "closed\n",
    'subst/page.txt'    => "red and red\n",
    'error.shtml'       => "<p>error <!--#echo var=\"REDIRECT_STATUS\" --></p>\n",
    'nested.shtml'      => "<p><!--#include virtual=\"/ssi.shtml\" --><!--#include virtual=\"/none\" --></p>\n",
    '../users'          => "$users\n",
    '../cgi-bin/body.cgi' => "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nexec cat\n",
);

my $conf = <<'END';
DocumentRoot "@FILES@"
AddLanguage en .en
AddLanguage de .de
Redirect permanent /moved /small.txt
RewriteEngine On
RewriteRule ^/rewritten$ /small.txt
RewriteRule ^/gone$ - [G]
ProxyPass /proxied/ http://127.0.0.1:@PORT@/
ErrorDocument 410 /error.shtml
ErrorDocument 403 "no entry"
SetEnvIf User-Agent odd odd
AddOutputFilterByType DEFLATE text/html
<Location "/gz">
    SetOutputFilter DEFLATE
</Location>
Alias /gz "@FILES@"
<Directory "@FILES@">
    Options +Indexes +MultiViews +Includes
    IndexOptions FancyIndexing
    AllowOverride All
    ExpiresActive On
    ExpiresByType text/plain "modification plus 1 year"
</Directory>
<Location "/auth">
    AuthType Basic
    AuthName "users"
    AuthBasicProvider file
    AuthUserFile "@FILES@/../users"
    Require valid-user
</Location>
<Location "/closed">
    Require all denied
</Location>
<Location "/compat">
    Order allow,deny
    Allow from all
    Deny from env=odd
    Deny from 192.0.2.0/24
</Location>
<Location "/subst">
    SetOutputFilter SUBSTITUTE
    Substitute "s/red/blue/"
</Location>
<Location "/server-info">
    SetHandler server-info
</Location>
END

my @basic = ('alice:secret' => 'YWxpY2U6c2VjcmV0', 'alice:wrong' => 'YWxpY2U6d3Jvbmc=');

# name => request line and headers; a body follows an empty line.
my @requests = (
    'a file'                    => "GET /small.txt HTTP/1.1\r\n",
    'a large file'              => "GET /big.txt HTTP/1.1\r\n",
    'HTTP/1.0'                  => "GET /page.html HTTP/1.0\r\n",
    'HEAD'                      => "HEAD /page.html HTTP/1.1\r\n",
    'OPTIONS'                   => "OPTIONS /small.txt HTTP/1.1\r\n",
    'TRACE'                     => "TRACE /small.txt HTTP/1.1\r\nX-Mine: yes\r\n",
    'an unknown method'         => "BREW /small.txt HTTP/1.1\r\n",
    'not modified'              => "GET /small.txt HTTP/1.1\r\nIf-None-Match: *\r\n",
    'a failed precondition'     => "GET /small.txt HTTP/1.1\r\nIf-Match: \"other\"\r\n",
    'a range'                   => "GET /page.html HTTP/1.1\r\nRange: bytes=10-99\r\n",
    'two ranges'                => "GET /page.html HTTP/1.1\r\nRange: bytes=10-19,100-109\r\n",
    'a range that is none'      => "GET /page.html HTTP/1.1\r\nRange: bytes=999999-\r\n",
    'not found'                 => "GET /none HTTP/1.1\r\n",
    'forbidden'                 => "GET /closed/page.html HTTP/1.1\r\n",
    'denied by address'         => "GET /compat/page.html HTTP/1.1\r\nUser-Agent: odd\r\n",
    'allowed by address'        => "GET /compat/page.html HTTP/1.1\r\nUser-Agent: usual\r\n",
    'gone, with a document'     => "GET /gone HTTP/1.1\r\n",
    'a redirect'                => "GET /moved HTTP/1.1\r\n",
    'a directory without slash' => "GET /list HTTP/1.1\r\n",
    'a rewritten URL'           => "GET /rewritten HTTP/1.1\r\n",
    'CGI'                       => "GET /cgi-bin/echo.cgi?a=1 HTTP/1.1\r\n",
    'CGI with a body'           => "POST /cgi-bin/body.cgi HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    'CGI with chunks'           => "POST /cgi-bin/body.cgi HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        . "5\r\nhello\r\n0\r\n\r\n",
    'CGI with 100-continue'     => "POST /cgi-bin/body.cgi HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n"
        . "\r\nhello",
    'CGI, missing'              => "GET /cgi-bin/none.cgi HTTP/1.1\r\n",
    'SSI'                       => "GET /ssi.shtml HTTP/1.1\r\n",
    'nested SSI with a miss'    => "GET /nested.shtml HTTP/1.1\r\n",
    'a directory index'         => "GET / HTTP/1.1\r\n",
    'a directory listing'       => "GET /list/ HTTP/1.1\r\n",
    'negotiation, German'       => "GET /nego.html HTTP/1.1\r\nAccept-Language: de\r\n",
    'negotiation, English'      => "GET /nego.html HTTP/1.1\r\nAccept-Language: en\r\n",
    'negotiation, none fits'    => "GET /nego.html HTTP/1.1\r\nAccept-Language: fr\r\n",
    'compression'               => "GET /gz/page.html HTTP/1.1\r\nAccept-Encoding: gzip\r\n",
    'compression by type'       => "GET /page.html HTTP/1.1\r\nAccept-Encoding: gzip\r\n",
    'compression, not wanted'   => "GET /gz/page.html HTTP/1.1\r\n",
    'a proxied file'            => "GET /proxied/page.html HTTP/1.1\r\n",
    'a proxied CGI'             => "GET /proxied/cgi-bin/echo.cgi?b=2 HTTP/1.1\r\n",
    'a proxied miss'            => "GET /proxied/none HTTP/1.1\r\n",
    'no credentials'            => "GET /auth/page.html HTTP/1.1\r\n",
    'good credentials'          => "GET /auth/page.html HTTP/1.1\r\nAuthorization: Basic $basic[1]\r\n",
    'bad credentials'           => "GET /auth/page.html HTTP/1.1\r\nAuthorization: Basic $basic[3]\r\n",
    '.htaccess, open'           => "GET /htac/open.txt HTTP/1.1\r\n",
    '.htaccess, closed'         => "GET /htac/closed.txt HTTP/1.1\r\n",
    '.htaccess itself'          => "GET /htac/.htaccess HTTP/1.1\r\n",
    'a substitution'            => "GET /subst/page.txt HTTP/1.1\r\n",
    'a header that is none'     => "GET /small.txt HTTP/1.1\r\nno colon\r\n",
    'an unknown protocol'       => "GET /small.txt HTTP/9.9\r\n",
    'a long URL'                => 'GET /' . 'x' x 9000 . " HTTP/1.1\r\n",
    'a bad escape'              => "GET /%zz HTTP/1.1\r\n",
    'an escaped slash'          => "GET /list%2fone.txt HTTP/1.1\r\n",
);

# Whether a CGI's answer has a length or chunks depends on who is faster.
sub without_framing {
    my ($bytes) = @_;
    my $interim = $bytes =~ s{^(HTTP/1\.1 100 .*?\r\n\r\n)}{}s ? $1 : '';
    my ($head, $body) = split /\r\n\r\n/, $bytes, 2;
    $head .= "\r\n";
    if ($head =~ s/^Transfer-Encoding: chunked\r\n//m) {
        my $whole = '';
        while ($body =~ s/^([0-9a-f]+)\r\n//) {
            my $length = hex $1 or last;
            $whole .= substr $body, 0, $length, '';
            $body =~ s/^\r\n//;
        }
        $body = $whole;
    }
    $head =~ s/^Content-Length: \d+\r\n//m;
    return "$interim$head\r\n" . ($body // '');
}

# What differs between any two answers of any two servers: times, ports, boundaries, and in which order httpd names
# methods.
sub normal {
    my ($srv, $bytes) = @_;
    my $port = $srv->port;
    $bytes =~ s/\b$port\b/PORT/g;
    $bytes =~ s/^(Date|Expires): .*?\r$/$1: TIME\r/mg;
    $bytes =~ s/^Cache-Control: max-age=\d+\r$/Cache-Control: max-age=TIME\r/mg;
    $bytes =~ s/^Allow: (.*?)\r$/'Allow: ' . join(',', sort split(m{,}, $1)) . "\r"/meg;
    if (my ($boundary) = $bytes =~ /boundary=(\w+)/) {
        $bytes =~ s/^Content-Length: \d+\r\n//m; # the boundary's digits are more or fewer
        $bytes =~ s/\Q$boundary\E/BOUNDARY/g;
    }
    return $bytes;
}

sub answer {
    my ($srv, $request) = @_;
    my ($head, $body) = split /\r\n\r\n/, $request, 2;
    $head =~ s/\r\n\z//;
    my $bytes = normal($srv, $srv->raw("$head\r\nHost: localhost\r\nConnection: close\r\n\r\n" . ($body // '')));
    return $head =~ /\.cgi/ ? without_framing($bytes) : $bytes;
}

# mod_info's list of hook functions, in its order, without our own page's.
sub hooks {
    my ($srv) = @_;
    my $text = $srv->get('/server-info?hooks')->{content};
    my @lines = map { s/<[^>]+>//gr =~ s/^\s+|\s+$//gr } split m{<br ?/>|\n}, $text =~ s/&nbsp;/ /gr;
    return [grep { /\S/ && !/mod_reqprof/ } @lines];
}

my $files;

# Files that changed within the last second have weak entity tags.
sub age {
    my ($dir) = @_;
    my $then = time - 3600;
    File::Find::find({ no_chdir => 1, wanted => sub { utime $then, $then, $_ or die "utime $_: $!\n" } }, $dir);
    return $dir;
}

sub start {
    my ($mpm, $profiler) = @_;
    my $srv = RpTest->start(mpm => $mpm, profiler => $profiler, modules => [@modules], cgi => 1, ssi => 1,
        files => \%files, conf => $conf =~ s/\@FILES\@/$files || '@DOCROOT@'/ger,
        allow_log => [qr/AH01630|AH01617|AH01797|AH00130|AH02811|AH01264|AH01276|AH00687|AH00026|AH00135|AH00690/,
            qr/AH10244|client denied/, qr/mod_include|unable to include/]);
    $files ||= age($srv->docroot);
    return $srv;
}

sub compare_answers {
    my ($name, $without, $with) = @_;
    my %statuses;
    for (my $i = 0; $i < @requests; $i += 2) {
        my ($plain, $measured) = map { answer($_, $requests[$i + 1]) } $without, $with;
        $statuses{ $plain =~ m{^HTTP/1\.1 (\d\d\d) } ? $1 : 'none' } = 1;
        ok $plain eq $measured, "$name: $requests[$i]: the same answer" or diag "without:\n$plain\nwith:\n$measured";
    }
    is_deeply [sort keys %statuses], [qw(100 200 206 301 304 400 401 403 404 406 410 412 414 416 501)],
        "$name: the answers are of all kinds";
    my $pipelined = join '', map { "GET $_ HTTP/1.1\r\nHost: localhost\r\n\r\n" } qw(/small.txt /none /ssi.shtml);
    my $last      = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    my @answers   = map { normal($_, $_->raw($pipelined . $last)) } $without, $with;
    is scalar(() = $answers[0] =~ m{^HTTP/1\.1 }mg), 4, "$name: four requests at once have four answers";
    ok $answers[0] eq $answers[1], "$name: and they are the same";
}

my $plain = start('event', 0);
for my $case (['event', 1], ['event', 'first'], ['prefork', 1]) {
    my ($mpm, $profiler) = @$case;
    my $name     = "$mpm, loaded " . ($profiler eq 'first' ? 'first' : 'last');
    my $without  = $mpm eq 'event' ? $plain : start($mpm, 0);
    my $measured = start($mpm, $profiler);
    my $hooks    = hooks($without);
    cmp_ok scalar(grep { /^-?\d+ \w+\.c$/ } @$hooks), '>', 100, "$name: mod_info lists the hooks' functions";
    is_deeply hooks($measured), $hooks, "$name: the same functions in the same order";
    compare_answers($name, $without, $measured);
    $without->done("$name: the server without it ends well") if $mpm ne 'event';
    $measured->done("$name: the server with it ends well");
}
$plain->done;

{
    my $srv = RpTest->start;
    my $url = '/reqprof-status';
    my $get = $srv->get($url);
    is $get->{status}, 200, 'the page is there';
    like $get->{headers}{'content-type'}, qr{^text/html}, 'as HTML';
    is $get->{headers}{'cache-control'}, 'no-store', 'it is not to be stored';
    like $get->{headers}{'content-security-policy'}, qr/default-src 'none'/, 'nothing is loaded with it';
    unlike $get->{headers}{'content-security-policy'}, qr/script-src|unsafe-eval/, 'and no script runs in it';
    is $get->{headers}{'x-content-type-options'}, 'nosniff', 'its type is not to be guessed';
    for my $query ('', '?format=json', '?format=text', '?auto') {
        my $head = $srv->get($url . $query, method => 'HEAD');
        is $head->{status}, 200, "HEAD $url$query is answered";
        is length($head->{content} // ''), 0, 'without a body';
        is $head->{headers}{'content-type'}, $srv->get($url . $query)->{headers}{'content-type'}, 'and as GET is';
        is $head->{headers}{'cache-control'}, 'no-store', 'and not to be stored';
    }
    for my $method (qw(POST PUT DELETE)) {
        my $res = $srv->get($url, method => $method, content => 'x=1');
        is $res->{status}, 405, "$method is refused";
        is_deeply [sort split /, */, $res->{headers}{allow} // ''], [qw(GET HEAD TRACE)],
            'with what is allowed (TRACE is httpd\'s own)';
    }
    for my $wrong (qw(colour=red format=pdf window=2y child=abc refresh=-1)) {
        my ($name, $value) = split /=/, $wrong;
        my $res = $srv->get("$url?$wrong");
        is $res->{status}, 400, "?$wrong is refused";
        like $res->{content}, qr/$name/, 'with a sentence that names it';
        like $res->{content}, qr/accepted/i, 'and what is accepted';
    }
    is $srv->get("$url?refresh=7")->{headers}{refresh}, 7, '?refresh=7 has the page read again';
    my $hostile = $srv->get("$url?colour=<script>alert(1)</script>");
    unlike $hostile->{content}, qr/<script/, 'a parameter is never markup'
        if $hostile->{headers}{'content-type'} =~ /html/;
    is $hostile->{status}, 400, 'and refused';
    $srv->done;
}

done_testing;
