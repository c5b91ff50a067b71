# Several requests in one write: httpd answers them together, and one call of the core filter ends all of them.

use strict;
use warnings;
use Test::More;
use Socket qw(SOL_SOCKET SO_LINGER);
use RpTest;
use RpTest::Truth;

my $ms = 60;
my $conf = <<'END';
AddOutputFilterByType DEFLATE text/html
MaxKeepAliveRequests 0
<Location "/made">
    SetHandler ruler-handler
</Location>
END

sub request {
    my ($path, %arg) = @_;
    my %headers = (Host => 'localhost', 'Accept-Encoding' => 'gzip', %{ $arg{headers} || {} });
    $headers{Connection}       = 'close'              if $arg{last};
    $headers{'Content-Length'} = length $arg{content} if defined $arg{content};
    my $lines = join '', map { "$_: $headers{$_}\r\n" } sort keys %headers;
    return ($arg{method} || 'GET') . " $path HTTP/1.1\r\n$lines\r\n" . ($arg{content} // '');
}

sub answers { return scalar(() = $_[0] =~ m{HTTP/1\.1 \d\d\d }g) }

# Three small answers from memory, which httpd holds back while more requests wait; only one of them has a rule.
sub three {
    my ($srv, $ruled, $rule) = @_;
    my $bytes = join '', map { request('/made', last => $_ == 3,
        headers => $_ == $ruled ? { 'X-Ruler' => $rule } : {}) } 1 .. 3;
    my $answer = $srv->raw($bytes);
    die "not three answers: $answer\n" if answers($answer) != 3;
}

# The requests to the server that is measured.
sub logged { my ($srv) = @_; return scalar grep { $_->{vhost} eq 'localhost' } $srv->access_log }

# What is in the access log, for a test that fails.
sub log_mix {
    my ($srv) = @_;
    my %count;
    $count{"$_->{vhost} $_->{status} $_->{request}"}++ for $srv->access_log;
    return join "\n", map { "$count{$_} x $_" } sort keys %count;
}

my %common = (status_vhost => 1, modules => [qw(filter deflate ruler)], ssi => 1, conf => $conf);

for my $mpm (qw(prefork worker event)) {
    my $srv = RpTest->start(mpm => $mpm, %common);

    # While a later one works, those before it wait with their answers ready: that is drain. event sends each at once.
    for my $which (1, 2, 3) {
        my %fixups = (phase => 'fixup', kind => 'hook', hook => 'fixups', owner => 'mod_ruler');
        my $rows = spent_in($srv, "$mpm, number $which waits in fixups", \%fixups, $ms,
            sub { three($srv, $which, "where=fixups;ms=$ms") }, requests => 3, allowed => [{ phase => 'drain' }]);
        cmp_ok grown_ns($rows, phase => 'drain'), '>=', $mpm eq 'event' ? 0 : ($which - 1) * $ms * 1e6,
            "$mpm, number $which waits: and those before it are in drain";
    }

    # The first's log is written while the third's call of the core filter is open: the third pauses, in other.
    my %log = (phase => 'log', kind => 'hook', hook => 'log_transaction', owner => 'mod_ruler');
    my $held = $mpm eq 'event' ? 0 : $ms * 1e6;
    my $rows = spent_in($srv, "$mpm, number 1 waits in its log", \%log, $ms,
        sub { three($srv, 1, "where=log_transaction;ms=$ms") }, requests => 3,
        allowed => [{ phase => 'drain' }, { phase => 'other' }]);
    cmp_ok grown_ns($rows, phase => 'other') + grown_ns($rows, phase => 'drain'), '>=', 2 * $held,
        "$mpm, number 1 waits in its log: the others' time is in other and drain";
    cmp_ok grown_ns($rows, phase => 'other'), '>=', $held, "$mpm, number 1 waits in its log: the third pauses";

    # All kinds in one write.
    my @kinds = (request('/small.txt'), request('/page.html'), request('/none'), request('/ssi.shtml'),
        request('/page.html', method => 'HEAD'), request('/made', method => 'POST', content => 'x' x 100),
        request('/page.html', headers => { Range => 'bytes=10-19' }), request('/'));
    my $many  = join('', (@kinds) x 10) . request('/small.txt', last => 1);
    my $delta = $srv->delta(sub { answers($srv->raw($many)) });
    is $delta->{result}, 81, "$mpm: 81 pipelined requests of eight kinds are answered";
    is $srv->requests($delta), 81, "$mpm: and counted";
    is $delta->{after}{requests}{in_flight}, 0, "$mpm: and none is left in flight";

    $delta = $srv->delta(sub { answers($srv->raw($many)) for 1 .. 10 });
    is $srv->requests($delta), 810, "$mpm: ten connections of them are counted";

    # One that is no request ends the connection; what was before it counts, and so does its 400.
    $delta = $srv->delta(sub { answers($srv->raw(request('/small.txt') x 3 . "no request\r\n\r\n")) });
    is $delta->{result}, 4, "$mpm: a bad request after three good ones is answered";
    is $srv->requests($delta), 4, "$mpm: and all are counted";

    # A client that sends many, and goes away without reading.
    my $before = logged($srv);
    $delta = $srv->delta(sub {
        for (1 .. 10) {
            my $socket = $srv->connect_to(rcvbuf => 4096);
            print {$socket} request('/page.html', headers => { 'Accept-Encoding' => 'identity' }) x 100;
            sysread $socket, my $some, 100;
            setsockopt $socket, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
        }
    });
    cmp_ok $srv->requests($delta), '>', 0, "$mpm: of requests of clients that went away, some are counted";
    is $srv->requests($delta), logged($srv) - $before, "$mpm: just those that were logged"
        or diag log_mix($srv);
    is $delta->{after}{requests}{in_flight}, 0, "$mpm: and nothing of them is left in flight";
    $srv->sums_ok($delta->{after}, $mpm);
    $srv->done;
}

done_testing;
