# Requests that end early, are no requests, or want only a part.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep);
use RpTest;
use RpTest::Truth;

my $ms = 60;
my $conf = <<'END';
RequestReadTimeout header=1 body=1
LimitRequestLine 2000
LimitRequestFields 20
<Location "/made">
    SetHandler ruler-handler
</Location>
<Location "/loop">
    RewriteEngine On
    RewriteRule ^ /loop/again [PT]
</Location>
<Location "/denied">
    Require all denied
</Location>
<VirtualHost 127.0.0.1:@PORT1@>
    ServerName off.test
    ReqProf Off
</VirtualHost>
END

my $close = "Host: localhost\r\nConnection: close\r\n\r\n";

# name, bytes, answer, class of the status
my @odd = (
    ['no request line',         "no request\r\n\r\n",                                        qr/^HTTP\S+ 400/, '4xx'],
    ['bytes of TLS',            "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",      qr/\b400\b/,      '4xx'],
    ['no Host',                 "GET / HTTP/1.1\r\n\r\n",                                    qr/^HTTP\S+ 400/, '4xx'],
    ['a bad header',            "GET / HTTP/1.1\r\nno colon\r\n$close",                      qr/^HTTP\S+ 400/, '4xx'],
    ['a long URI',              'GET /' . 'x' x 3000 . " HTTP/1.1\r\n$close",                qr/^HTTP\S+ 414/, '4xx'],
    ['too many headers',        "GET / HTTP/1.1\r\n" . "X: y\r\n" x 30 . $close,             qr/^HTTP\S+ 400/, '4xx'],
    ['an unknown method',       "BREW /small.txt HTTP/1.1\r\n$close",                        qr/^HTTP\S+ 501/, '5xx'],
    ['an unknown expectation',  "GET / HTTP/1.1\r\nExpect: tea\r\n$close",                   qr/^HTTP\S+ 417/, '4xx'],
    ['an unknown encoding',     "POST /made HTTP/1.1\r\nTransfer-Encoding: x\r\n$close",     qr/^HTTP\S+ 400/, '4xx'],
    ['a bad chunk',             "POST /made HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${close}zz\r\n",
        qr/^HTTP\S+ 400/, '4xx'],
    ['HTTP/1.0',                "GET /small.txt HTTP/1.0\r\n\r\n",                           qr/^HTTP\S+ 200/, '2xx'],
    ['OPTIONS *',               "OPTIONS * HTTP/1.1\r\n$close",                              qr/^HTTP\S+ 200/, '2xx'],
    ['HEAD',                    "HEAD /page.html HTTP/1.1\r\n$close",                        qr/^HTTP\S+ 200/, '2xx'],
    ['a range',                 "GET /page.html HTTP/1.1\r\nRange: bytes=5-9\r\n$close",     qr/^HTTP\S+ 206/, '2xx'],
    ['two ranges',              "GET /page.html HTTP/1.1\r\nRange: bytes=5-9,20-30\r\n$close", qr/^HTTP\S+ 206/, '2xx'],
    ['a range beyond the end',  "GET /small.txt HTTP/1.1\r\nRange: bytes=500-\r\n$close",    qr/^HTTP\S+ 416/, '4xx'],
    ['not modified',            "GET /small.txt HTTP/1.1\r\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n"
        . $close, qr/^HTTP\S+ (?:200|304)/, undef],
    ['denied',                  "GET /denied/x HTTP/1.1\r\n$close",                          qr/^HTTP\S+ 403/, '4xx'],
    ['a directory without /',   "GET /list HTTP/1.1\r\n$close",                              qr/^HTTP\S+ 301/, '3xx'],
    ['rewritten without end',   "GET /loop HTTP/1.1\r\n$close",                              qr/^HTTP\S+ 500/, '5xx'],
);

my @classes = qw(1xx 2xx 3xx 4xx 5xx);

sub one_more {
    my ($srv, $delta, $class) = @_;
    my %grew = map { $_ => $delta->{after}{requests}{by_status}{$_} - $delta->{before}{requests}{by_status}{$_} }
        @classes;
    return join ' ', map { "$_=$grew{$_}" } grep { $grew{$_} } @classes;
}

sub body_stops {
    my ($srv) = @_;
    return $srv->raw("POST /made HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\npart");
}

for my $mpm (qw(prefork worker event)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, modules => [qw(reqtimeout rewrite ruler)], ports => 1,
        conf => $conf, files => { 'list/index.html' => "list\n" },
        expect_log => [qr/AH01630: client denied/, qr/AH00135: Invalid method/,
            qr/AH00124: Request exceeded the limit/]);

    for my $case (@odd) {
        my ($name, $bytes, $answer, $class) = @$case;
        my $delta = $srv->delta(sub { $srv->raw($bytes) });
        like $delta->{result}, $answer, "$mpm, $name: the answer";
        is $srv->requests($delta), 1, "$mpm, $name: counted once";
        my $grown = one_more($srv, $delta);
        like $grown, $class ? qr/^$class=1$/ : qr/^\dxx=1$/, "$mpm, $name: under its status";
        cmp_ok $srv->total_ns($delta), '>', 0, "$mpm, $name: with a time";
        $srv->sums_ok($delta->{after}, "$mpm, $name");
    }

    # Time spent for a request that fails is where it was spent.
    spent_in($srv, "$mpm, HEAD", { phase => 'fixup', hook => 'fixups', owner => 'mod_ruler' }, $ms,
        sub { $srv->get('/page.html', method => 'HEAD', headers => { 'X-Ruler' => "where=fixups;ms=$ms" }) });
    spent_in($srv, "$mpm, range", { phase => 'fixup', hook => 'fixups', owner => 'mod_ruler' }, $ms,
        sub { $srv->get('/page.html', headers => { Range => 'bytes=1-3', 'X-Ruler' => "where=fixups;ms=$ms" }) });
    spent_in($srv, "$mpm, refused in a hook", { phase => 'access', hook => 'access_checker', owner => 'mod_ruler' },
        $ms, sub { $srv->get('/small.txt', headers => { 'X-Ruler' => "where=access_checker;ms=$ms;return=403" }) });

    my $delta = $srv->delta(sub { $srv->raw("GET /small.txt HTTP/1.1\r\nHost: loc") });
    like $delta->{result}, qr/^HTTP\S+ 408/, "$mpm, half a header: 408";
    is one_more($srv, $delta), '4xx=1', "$mpm, half a header: counted once";
    is $srv->requests($delta), 1, "$mpm, half a header: as one request";
    # The server stops waiting a second after the header's first bytes came; most of that is after the request line.
    cmp_ok $srv->phase_ns($delta, 'read'), '>=', 500e6, "$mpm, half a header: the wait is read";

    $delta = $srv->delta(sub { body_stops($srv) });
    like one_more($srv, $delta), qr/^4xx=1$/, "$mpm, half a body: counted once";
    cmp_ok $srv->phase_ns($delta, 'network'), '>=', 500e6, "$mpm, half a body: the wait is network";
    cmp_ok $srv->phase_ns($delta, 'handler'), '<', $srv->phase_ns($delta, 'network'),
        "$mpm, half a body: and more than the handler has";

    # Connections without a request are none; httpd may log them, with status 408.
    $delta = $srv->delta(sub { close $srv->connect_to for 1 .. 5 });
    is $srv->requests($delta), 0, "$mpm: connections that are closed at once are no requests";

    # A virtual host that is not measured.
    $delta = $srv->delta(sub { $srv->get('/small.txt', port => ($srv->ports)[0]) for 1 .. 3 });
    is $srv->requests($delta), 0, "$mpm: a virtual host with ReqProf Off counts nothing";
    is $delta->{after}{requests}{in_flight}, 0, "$mpm: and nothing is left in flight";
    $srv->sums_ok($srv->json, $mpm);
    $srv->done;
}

done_testing;
