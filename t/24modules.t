# With every module that is installed: the server starts, restarts gracefully under load, answers, and logs nothing that
# it does not log without the profiler.

use strict;
use warnings;
use File::Basename qw(basename);
use Test::More;
use RpTest;
use RpTest::Build;

my $restarts = $ENV{RP_VALGRIND} ? 2 : 20;

# PHP loads its opcode cache in a way that a sanitizer refuses: do without PHP's extensions there.
$ENV{PHP_INI_SCAN_DIR} = '/nonexistent' if $ENV{RP_LD_PRELOAD};

# Modules that cannot be loaded beside the others: one MPM at a time, and mod_cgi and mod_cgid share their directives.
my %left_out = (
    prefork => { map { $_ => 1 } qw(mpm_worker mpm_event mpm_prefork cgid) },
    worker  => { map { $_ => 1 } qw(mpm_worker mpm_event mpm_prefork cgi) },
);
$left_out{event} = $left_out{worker};

# Those whose functions others call come first.
my @first = qw(proxy dav session ldap cache dbd slotmem_shm slotmem_plain socache_shmcb ssl http2 request watchdog
    auth_basic unique_id xml2enc);

sub installed {
    return map { basename($_) =~ /^mod_(\w+)\.so$/ ? $1 : () } sort glob RpTest::Build::libexecdir() . '/mod_*.so';
}

sub modules_for {
    my ($mpm) = @_;
    my %all = map { $_ => 1 } grep { $_ ne 'reqprof' && !$left_out{$mpm}{$_} } installed();
    my @names = ((grep { delete $all{$_} } @first), sort keys %all);
    return grep { !/^(?:perl|security2)$/ } @names;
}

# Modules of other packages: name, file, MPMs, configuration, and a request that they answer or refuse.
my @extra = (
    { name => 'perl', file => 'mod_perl.so', package => 'libapache2-mod-perl2', mpms => [qw(prefork worker event)],
      conf => <<'END', path => '/perl', status => 200, content => qr/perl says hello/ },
<Perl>
    package RpHello;
    use Apache2::RequestRec ();
    use Apache2::RequestIO ();
    sub handler { my $r = shift; $r->content_type('text/plain'); $r->print("perl says hello\n"); return 0 }
    $INC{'RpHello.pm'} = 1;
</Perl>
<Location "/perl">
    SetHandler perl-script
    PerlResponseHandler RpHello
</Location>
END
    { name => 'php', file => 'libphp*.so', package => 'libapache2-mod-php', mpms => ['prefork'],
      conf => "<FilesMatch \"\\.php\$\">\nSetHandler application/x-httpd-php\n</FilesMatch>\n",
      path => '/hello.php', status => 200, content => qr/php says 42/ },
    { name => 'security2', file => 'mod_security2.so', package => 'libapache2-mod-security2',
      mpms => [qw(prefork worker event)],
      path => '/small.txt?attack', status => 403, content => qr/./, conf => <<'END' },
SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess On
SecDataDir "@DIR@/run"
SecTmpDir "@DIR@/run"
SecRule QUERY_STRING "attack" "id:1001,phase:2,deny,nolog,status:403"
END
);

sub extras_for {
    my ($mpm) = @_;
    my @there;
    for my $extra (grep { grep { $_ eq $mpm } @{ $_->{mpms} } } @extra) {
        my ($file) = grep { -e } glob RpTest::Build::libexecdir() . "/$extra->{file}";
        if ($file) { push @there, { %$extra, loads => "LoadModule $extra->{name}_module \"$file\"\n" } }
        else       { note "$mpm: without mod_$extra->{name}: $extra->{package} is not installed" }
    }
    return @there;
}

my $conf = <<'END';
<Location "/server-status">
    SetHandler server-status
</Location>
<Location "/server-info">
    SetHandler server-info
</Location>
<Location "/balancer">
    SetHandler balancer-manager
</Location>
<Directory "@DOCROOT@">
    Options +Indexes +Includes +MultiViews
</Directory>
AddHandler lua-script .lua
<Location "/dav">
    Dav On
</Location>
DavLockDB "@DIR@/run/davlock"
ProxyPass /proxied/ http://127.0.0.1:@PORT@/
RewriteEngine On
RewriteRule ^/rewritten$ /small.txt
SetEnvIf User-Agent wrk tool
<Location "/gz">
    SetOutputFilter DEFLATE
</Location>
Alias /gz "@DOCROOT@"
CacheEnable socache /page.html
END

my %files = (
    'hello.php'    => "<?php echo 'php says ', 6 * 7;\n",
    'hello.lua'    => "function handle(r)\n    r.content_type = 'text/plain'\n    r:puts('lua says hello')\n"
        . "    return apache2.OK\nend\n",
    'list/one.txt' => "one\n",
    'dav/file.txt' => "dav\n",
);

my @paths = (
    ['/small.txt', 200], ['/page.html', 200], ['/list/', 200], ['/ssi.shtml', 200], ['/cgi-bin/echo.cgi', 200],
    ['/none', 404], ['/proxied/small.txt', 200], ['/rewritten', 200], ['/server-status?auto', 200],
    ['/server-info?list', 200], ['/hello.lua', 200], ['/dav/file.txt', 200], ['/gz/page.html', 200],
);

my $script = <<'END';
local paths = {"/small.txt", "/page.html", "/list/", "/ssi.shtml", "/none", "/rewritten", "/gz/page.html", "/hello.lua"}
local turn = 0
request = function()
    turn = turn + 1
    return wrk.format("GET", paths[turn % #paths + 1])
end
END

sub start_load {
    my ($srv) = @_;
    return $srv->background(sub {
        open STDOUT, '>', '/dev/null' or die "/dev/null: $!\n";
        exec 'wrk', '-d', '600s', '-t', 1, '-c', 4, '-s', $srv->dir . '/mix.lua', $srv->url;
    });
}

# What the log says, without what differs from run to run.
sub log_lines {
    my ($srv) = @_;
    my %seen;
    for my $line ($srv->error_log, $srv->console) {
        my $dir = $srv->dir;
        my $say = $line =~ s/^\[[A-Z][^\]]*\] //r =~ s/\Q$dir\E/DIR/gr =~ s/\[(?:pid|client)[^\]]*\] //gr;
        $seen{ $say =~ s/(?:0x)?\b[0-9a-f]*\d[0-9a-f]*\b/N/gr } = $line;
    }
    return \%seen;
}

# Starts, asks, restarts under load, asks again and stops. Returns the answers' statuses and what was logged.
sub run_all {
    my ($mpm, $profiler, @extras) = @_;
    my $srv = RpTest->start(mpm => $mpm, profiler => $profiler, cgi => 1, ssi => 1, modules => [modules_for($mpm)],
        files => { %files, '../mix.lua' => $script }, allow_log => qr/./, crash => 1,
        mpm_conf => $mpm eq 'prefork' ? { ServerLimit => 16, MaxRequestWorkers => 16, MaxSpareServers => 16 } : {},
        conf => join('', map { $_->{loads} } @extras) . $conf . join('', map { $_->{conf} } @extras));
    my @asked = (@paths, map { [$_->{path}, $_->{status}, $_->{content}] } @extras);
    my @before = map { $srv->get($_->[0]) } @asked;
    my $load = start_load($srv);
    my $came_up = 0;
    for (1 .. $restarts) {
        $came_up += !!eval { $srv->graceful; 1 };
    }
    $load->kill;
    my @after = map { $srv->get($_->[0]) } @asked;
    my %result = (asked => \@asked, before => \@before, after => \@after, restarts => $came_up);
    if ($profiler) {
        $srv->wait_for(sub { $srv->json->{server}{epoch} == $restarts + 1 }, 10);
        $result{json} = $srv->json;
        $result{text} = $srv->text;
    }
    $result{stopped} = $srv->stop;
    $result{faults}  = [$srv->sanitizer_faults, $srv->valgrind_faults];
    $result{log}     = log_lines($srv);
    $srv->done("$mpm, " . ($profiler ? 'with' : 'without') . ' the profiler: the server stops');
    return \%result;
}

for my $mpm (qw(prefork worker event)) {
    my @extras  = extras_for($mpm);
    my $without = run_all($mpm, 0, @extras);
    my $with    = run_all($mpm, 1, @extras);
    my @names   = (modules_for($mpm), map { $_->{name} } @extras);
    cmp_ok scalar(@names), '>', 60, "$mpm: " . @names . ' modules are loaded';
    is $with->{restarts}, $restarts, "$mpm: the server restarts gracefully $restarts times under load";
    for my $number (0 .. $#{ $with->{asked} }) {
        my ($path, $status, $content) = @{ $with->{asked}[$number] };
        is $with->{$_}[$number]{status}, $without->{$_}[$number]{status}, "$mpm: $path is answered, $_ the restarts"
            for qw(before after);
        is $with->{after}[$number]{status}, $status, "$mpm: $path: as expected";
        like $with->{after}[$number]{content}, $content, "$mpm: $path: by the module" if $content;
    }
    my @new = map { $with->{log}{$_} } grep { !$without->{log}{$_} } sort keys %{ $with->{log} };
    my $unwrapped = $with->{json}{profiler}{dropped}{unwrapped_links};
    @new = grep { !/RP002/ } @new if $unwrapped;
    is join("\n", @new), '', "$mpm: nothing is logged that is not logged without the profiler";
    like $unwrapped, qr/^\d+$/, "$mpm: the report says how many functions are not measured: $unwrapped";
    like $with->{text}, qr/unwrapped_links: $unwrapped$/m, "$mpm: so does the text";
    is $unwrapped, 0, "$mpm: there are slots for all of them";
    is $with->{json}{profiler}{dropped}{unbalanced}, 0, "$mpm: each request is in balance";
}

done_testing;
