# A request's total is at least the access log's %D, and on an idle server no more than a little above it.

use strict;
use warnings;
use Test::More;
use RpTest;
use RpTest::Truth;

my $conf = <<'END';
<Location "/made">
    SetHandler ruler-handler
</Location>
END

# The total ends after the access log's line is written and %D before; both begin together. So the total is larger by
# the time of that write: 1 ms and 2 % are more than enough, on a machine that does nothing else.
sub limit_us { my ($us) = @_; return $us * 1.02 + 1000 }

# Each try's %D in us and total in ns.
sub compare {
    my ($srv, $name, $ask) = @_;
    my (@below, @complaints);
    my @far = best_of(sub {
        my $delta = $srv->delta($ask);
        my $us    = $srv->access_entry($delta->{result})->{us};
        my $ns    = $srv->total_ns($delta);
        push @complaints, $srv->requests($delta) if $srv->requests($delta) != 1;
        push @below, "total $ns ns, %D $us us" if $ns < $us * 1000;
        return $ns > limit_us($us) * 1000 ? "total $ns ns, %D $us us" : ();
    });
    ok !@complaints, "$name: one request" or diag "@complaints";
    ok !@below, "$name: the total is never below %D" or diag join "\n", @below;
    ok !@far, "$name: the total is within 1 ms and 2 % of %D" or diag @far;
    return;
}

# Sum of many: each request's share of the comparison holds, so the sum's does.
sub compare_sums {
    my ($srv, $name, %load) = @_;
    my $seen  = scalar $srv->access_log;
    my $delta = $srv->delta(sub { $srv->ab(%load) });
    my @new   = $srv->access_log;
    my @lines = grep { $_->{vhost} eq 'localhost' } @new[$seen .. $#new];
    my $us    = 0;
    $us += $_->{us} for @lines;
    is $srv->requests($delta), scalar @lines, "$name: as many requests as lines in the log";
    cmp_ok $srv->total_ns($delta), '>=', $us * 1000, "$name: their total is at least the sum of %D";
    return;
}

for my $clock (qw(auto monotonic)) {
    for my $mpm (qw(prefork worker event)) {
        next if $clock eq 'monotonic' && $mpm ne 'event';
        my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, modules => ['ruler'], tls => 1, http2 => $mpm ne
            'prefork', cgi => 1, conf => "ReqProfClock $clock\n$conf");
        my $name = "$mpm, clock $clock";

        for my $ms (0, 5, 100, 400) {
            my %rule = ('X-Ruler' => "where=content;ms=$ms");
            compare($srv, "$name, $ms ms", sub { $srv->get('/made', headers => \%rule) });
        }
        compare($srv, "$name, file", sub { $srv->get('/page.html') });
        compare($srv, "$name, large file", sub { $srv->get('/big.txt') });
        compare($srv, "$name, not there", sub { $srv->get('/none') });
        compare($srv, "$name, CGI", sub { $srv->get('/cgi-bin/echo.cgi') });
        compare($srv, "$name, TLS", sub { $srv->tls_get('/page.html') });
        compare($srv, "$name, HTTP/2", sub { $srv->tls_get('/page.html', http2 => 1) }) if $mpm ne 'prefork';
        compare($srv, "$name, slow header", sub { slow_header($srv, 100) });
        compare_sums($srv, "$name, load", requests => 1000, concurrency => 8, keep_alive => 1, path => '/page.html');
        compare_sums($srv, "$name, load that waits", requests => 100, concurrency => 8, path => '/made',
            headers => { 'X-Ruler' => 'where=content;ms=3' });
        $srv->sums_ok($srv->json, $name);
        $srv->done;
    }
}

# The request line, then the rest later.
sub slow_header {
    my ($srv, $pause_ms) = @_;
    my $id     = RpTest::Client::new_id();
    my $socket = $srv->connect_to;
    print {$socket} "GET /small.txt HTTP/1.1\r\n";
    select undef, undef, undef, $pause_ms / 1000;
    print {$socket} "Host: localhost\r\nX-Test-Id: $id\r\nConnection: close\r\n\r\n";
    RpTest::Client::read_all($socket);
    return { id => $id };
}

done_testing;
