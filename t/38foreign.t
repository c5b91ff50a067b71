# Answers that another process makes: CGI and a proxied server.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(time);
use RpTest;
use RpTest::Truth;

# One CGI request whose script sleeps; it is waited for in the handler and counted once, not twice.
sub cgi {
    my ($srv, $mpm, $path, $ms) = @_;
    my ($rows, $total, $client, @complaints);
    my @noise = best_of(sub {
        my $delta = $srv->delta(sub { my $start = time; my $res = $srv->get($path);
            return { %$res, ns => (time - $start) * 1e9 } });
        die "$path: $delta->{result}{status}\n" if $delta->{result}{status} != 200;
        $total = $srv->total_ns($delta);
        push @complaints, 'requests ' . $srv->requests($delta) if $srv->requests($delta) != 1;
        push @complaints, "total only $total ns" if $total < $ms * 1e6;
        $rows = growth($srv, $delta);
        # A script may write its answer and close later: the answer's last byte is waited for by a filter.
        my $waited = grown_ns($rows, phase => qr/^(?:handler|filter|network)$/);
        push @complaints, "only $waited ns in handler and filters" if $waited < $ms * 1e6;
        return @complaints ? () : $total > $ms * 1.8e6 ? "total $total ns" : ();
    });
    ok !@complaints, "$mpm, $path: the script's $ms ms are in the request, once" or diag @complaints;
    ok !@noise, "$mpm, $path: and not nearly twice" or diag @noise;
    cmp_ok grown_ns($rows, phase => 'handler'), '>=', $ms * 0.9e6, "$mpm, $path: the handler waited for the script";
    return;
}

for my $mpm (qw(prefork worker event)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, cgi => 1, modules => [qw(filter deflate)],
        conf => "AddOutputFilterByType DEFLATE text/plain\n");
    cgi($srv, $mpm, '/cgi-bin/echo.cgi?sleep=0.1', 100);
    cgi($srv, $mpm, '/cgi-bin/echo.cgi?sleep=0.25', 250);
    my $delta = $srv->delta(sub { $srv->ab(requests => 40, concurrency => 4, path => '/cgi-bin/echo.cgi') });
    is $srv->requests($delta), 40, "$mpm: forty CGI requests are counted";
    is $srv->phase_count($delta, 'handler'), 40, "$mpm: and each had a handler";
    $srv->sums_ok($srv->json, $mpm);
    $srv->done;
}

# The server behind makes the answer slowly; the one in front waits in its handler, mod_proxy.
my $ms      = 60;
my $backend = RpTest->start(mpm => 'event', status_vhost => 1, modules => ['ruler'], conf => <<'END');
<Location "/made">
    SetHandler ruler-handler
</Location>
END

my $target = 'http://127.0.0.1:' . $backend->port;
my $front  = <<"END";
ProxyPass "/behind/" "$target/"
ProxyPass "/dead/" "http://127.0.0.1:1/" retry=0
END

for my $mpm (qw(prefork worker event)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, modules => [qw(proxy proxy_http ruler2)], conf => $front,
        expect_log => [qr/AH00957:/, qr/AH01114:/]);
    my $handler = { phase => 'handler', kind => 'hook', hook => 'handler', owner => 'mod_proxy' };

    for my $where (qw(fixups content)) {
        my %rule = ('X-Ruler' => "where=$where;ms=$ms");
        spent_in($srv, "$mpm, proxied, $where behind", $handler, $ms,
            sub { my $status = $srv->get('/behind/made', headers => \%rule)->{status};
                die "proxied: $status\n" if $status != 200 });
    }
    my $delta = $backend->delta(sub { $srv->get('/behind/made', headers => { 'X-Ruler' => "where=fixups;ms=$ms" }) });
    is $backend->requests($delta), 1, "$mpm, proxied: the server behind counts its own request";
    cmp_ok $backend->phase_ns($delta, 'fixup'), '>=', $ms * 1e6, "$mpm, proxied: and says where it took its time";

    spent_in($srv, "$mpm, proxied, here", { phase => 'fixup', hook => 'fixups', owner => 'mod_ruler2' }, $ms,
        sub { $srv->get('/behind/made', headers => { 'X-Ruler2' => "where=fixups;ms=$ms" }) });

    $delta = $srv->delta(sub { $srv->get('/behind/big.txt') });
    is length $delta->{result}{content}, -s $backend->docroot . '/big.txt', "$mpm, proxied: a large file comes whole";
    is $srv->requests($delta), 1, "$mpm, proxied: a large file is one request";

    $delta = $srv->delta(sub { $srv->get('/behind/made', method => 'POST', content => 'x' x 200_000) });
    is $delta->{result}{status}, 200, "$mpm, proxied: an upload is handed on";
    is $srv->requests($delta), 1, "$mpm, proxied: and is one request";

    $delta = $srv->delta(sub { $srv->get('/dead/x') });
    is $delta->{result}{status}, 503, "$mpm, proxied: nobody behind";
    is $srv->requests($delta), 1, "$mpm, proxied: nobody behind, counted";

    my %load = (requests => 300, concurrency => 6, keep_alive => 1, path => '/behind/page.html');
    $delta = $srv->delta(sub { $srv->ab(%load) });
    is $srv->requests($delta), 300, "$mpm, proxied: 300 requests over kept connections are counted";
    is $delta->{after}{requests}{in_flight}, 0, "$mpm, proxied: and none is left in flight";
    $srv->sums_ok($srv->json, "$mpm, proxied");
    $srv->done;
}
$backend->sums_ok($backend->json, 'behind');
$backend->done;

done_testing;
