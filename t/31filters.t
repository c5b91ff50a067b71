# Time spent in filters, in and out, before and after compressing, for a request and for a connection.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep);
use RpTest;
use RpTest::Truth;

my $ms = 60;
my $conf = <<'END';
AddOutputFilterByType DEFLATE text/html text/plain
<Location "/made">
    SetHandler ruler-handler
</Location>
END

my %gzip = ('Accept-Encoding' => 'gzip');

sub filter { my ($phase, $hook, $owner) = @_;
    return { phase => $phase, kind => 'filter', hook => $hook, owner => $owner } }

sub ask {
    my ($srv, $path, $headers, %arg) = @_;
    my $res = $srv->get($path, headers => { %gzip, %$headers }, %arg);
    die "$path: $res->{status} $res->{content}\n" if $res->{status} != 200;
    return $res;
}

# A body in two chunks, with a pause before each.
sub send_chunks {
    my ($srv, $pause_ms) = @_;
    my $socket = $srv->connect_to;
    print {$socket} "POST /made HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    for my $chunk ("5\r\nhello\r\n", "6\r\n world\r\n0\r\n\r\n") {
        sleep $pause_ms / 1000;
        print {$socket} $chunk;
    }
    return RpTest::Client::read_all($socket);
}

# Waits for the server's 100, lets it wait, and then sends the body.
sub send_after_continue {
    my ($srv, $pause_ms) = @_;
    my $socket = $srv->connect_to;
    print {$socket} "POST /made HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n"
        . "Connection: close\r\n\r\n";
    sysread $socket, my $interim, 4096;
    sleep $pause_ms / 1000;
    print {$socket} 'hello';
    return $interim . RpTest::Client::read_all($socket);
}

# A client that pauses is waited for on the network; how long the server really waited, only the server knows: most
# of the pause.
sub waits_for_body {
    my ($srv, $name, $pause_ms, $answer, $sub) = @_;
    my $rows;
    my @complaints = best_of(sub {
        my $delta = $srv->delta($sub);
        $rows = growth($srv, $delta);
        my $network = $srv->phase_ns($delta, 'network');
        my @bad = grep { $_->{phase} ne 'network' && $_->{ns} > $pause_ms * 1e5 } @$rows;
        return 'answered ' . $delta->{result} if $delta->{result} !~ $answer;
        return 'requests: ' . $srv->requests($delta) if $srv->requests($delta) != 1;
        push @bad, { phase => 'network', owner => 'only', ns => $network } if $network < $pause_ms * 7e5;
        return map { "$_->{phase} $_->{owner} $_->{ns}" } @bad;
    });
    ok !@complaints, "$name: waiting for the body is network, and nothing else" or diag join "\n", @complaints;
    my $input = grown_ns($rows, phase => 'network', hook => 'input');
    cmp_ok $input, '>=', $pause_ms * 7e5, "$name: in an input filter";
}

for my $mpm (qw(prefork worker event)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, modules => [qw(filter deflate reqtimeout ruler ruler2)],
        conf => $conf, tls => $mpm eq 'event');

    for my $place ([before => 'RULER_BEFORE'], [after => 'RULER_AFTER']) {
        my ($where, $owner) = @$place;
        my $rows = spent_in($srv, "$mpm, $where DEFLATE", filter('filter', 'output', $owner), $ms,
            sub { ask($srv, '/page.html', { 'X-Ruler' => "where=$where;ms=$ms" }) });
        cmp_ok grown_ns($rows, phase => 'deflate', owner => 'DEFLATE'), '>', 0, "$mpm, $where: DEFLATE compressed";
    }

    spent_in($srv, "$mpm, both rulers", filter('filter', 'output', 'RULER2_AFTER'), $ms,
        sub { ask($srv, '/page.html', { 'X-Ruler' => 'where=before;ms=6', 'X-Ruler2' => "where=after;ms=$ms" }) },
        allowed => [filter('filter', 'output', 'RULER_BEFORE')]);

    spent_in($srv, "$mpm, connection filter", filter('network', 'output', 'RULER_CONN'), $ms,
        sub { ask($srv, '/page.html', { 'X-Ruler' => "where=conn;ms=$ms" }) });

    spent_in($srv, "$mpm, input filter", filter('filter', 'input', 'RULER_IN'), $ms,
        sub { ask($srv, '/made', { 'X-Ruler' => "where=in;ms=$ms" }, method => 'POST', content => 'x' x 100) });

    # The filter runs below the handler, and the handler's own time stays its own.
    my $made = 'where=content;ms=60;bytes=100, where=after;ms=20';
    my $rows = spent_in($srv, "$mpm, handler and filter", { phase => 'handler', hook => 'handler',
        owner => 'mod_ruler' }, $ms, sub { ask($srv, '/made', { 'X-Ruler' => $made }) },
        allowed => [filter('filter', 'output', 'RULER_AFTER')]);
    cmp_ok grown_ns($rows, owner => 'RULER_AFTER'), '>=', 20e6, "$mpm, handler and filter: each has its own";

    waits_for_body($srv, "$mpm, slow upload", 200, qr/^HTTP\S+ 200/, sub { $srv->slow_send('/made', 'x' x 4,
        bytes => 2, pause_ms => 100) });
    waits_for_body($srv, "$mpm, chunked upload", 200, qr/^HTTP\S+ 200/, sub { send_chunks($srv, 100) });
    waits_for_body($srv, "$mpm, 100-continue", 200, qr/^HTTP\S+ 100.*HTTP\S+ 200/s,
        sub { send_after_continue($srv, 200) });

    if ($mpm eq 'event') {
        my $tls = sub { my $res = $srv->tls_get('/page.html', headers => { %gzip, 'X-Ruler' => $_[0] });
            die "TLS: $res->{status}\n" if $res->{status} != 200 };
        my $grown = spent_in($srv, 'TLS, before DEFLATE', filter('filter', 'output', 'RULER_BEFORE'), $ms,
            sub { $tls->("where=before;ms=$ms") });
        cmp_ok grown_ns($grown, phase => 'network', owner => 'SSL/TLS FILTER', hook => 'output'), '>', 0,
            'TLS: encrypting is network';
        # Below RULER_CONN stands the filter that encrypts; what it waits for is not encrypting.
        spent_in($srv, 'TLS, connection filter', filter('network', 'output', 'RULER_CONN'), $ms,
            sub { $tls->("where=conn;ms=$ms") });
    }
    $srv->sums_ok($srv->json, $mpm);
    $srv->done;
}

done_testing;
