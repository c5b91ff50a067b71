# Clients that read slowly, go away, say nothing for a while, or send their header slowly.

use strict;
use warnings;
use Test::More;
use Socket qw(SOL_SOCKET SO_LINGER);
use Time::HiRes qw(sleep);
use RpTest;
use RpTest::Truth;

my $pause_ms = 300;
my $conf = <<'END';
SendBufferSize 65536
KeepAliveTimeout 10
<Location "/made">
    SetHandler ruler-handler
    Ruler "where=content;bytes=3000000"
</Location>
<Location "/sendfile/">
    EnableSendfile On
</Location>
END

my $large  = 'large and slow ' x 200_000;
my %common = (status_vhost => 1, modules => ['ruler'], conf => $conf,
    files => { 'large.txt' => $large, 'sendfile/large.txt' => $large });

# Does nothing for a while after asking, then reads all.
sub late_reader {
    my ($srv, $path) = @_;
    my $socket = $srv->connect_to(rcvbuf => 65536);
    print {$socket} "GET $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    sleep $pause_ms / 1000;
    return length RpTest::Client::read_all($socket);
}

# Asks once more until one try has no complaint. The sub returns (delta, complaints).
sub holds {
    my ($name, $sub) = @_;
    my @complaints = best_of($sub);
    ok !@complaints, $name or diag join "\n", @complaints;
}

sub miscounted { my ($srv, $delta, $wanted) = @_; my $got = $srv->requests($delta);
    return $got == $wanted ? () : "$got requests counted, not $wanted" }

sub at_least { my ($what, $ns, $ms) = @_; return $ns >= $ms * 1e6 ? () : sprintf '%s: only %.1f ms', $what, $ns / 1e6 }
sub at_most  { my ($what, $ns, $ms) = @_; return $ns <= $ms * 1e6 ? () : sprintf '%s: %.1f ms', $what, $ns / 1e6 }

# The server waits for the reader in the named phase, and in no other.
sub waits_in {
    my ($srv, $name, $path, $phase) = @_;
    holds("$name: waiting for the reader is $phase, and nothing else", sub {
        my $delta = $srv->delta(sub { late_reader($srv, $path) });
        my @other = grep { $_ ne $phase } map { $_->{phase} } @{ $delta->{after}{phases} };
        return (miscounted($srv, $delta, 1), at_least($phase, $srv->phase_ns($delta, $phase), 0.7 * $pause_ms),
            map { at_most($_, $srv->phase_ns($delta, $_), 0.1 * $pause_ms) } @other);
    });
}

# Goes away in the middle of an answer: with a reset, so that the server's write fails.
sub gone_reader {
    my ($srv, $path) = @_;
    my $socket = $srv->connect_to(rcvbuf => 65536);
    print {$socket} "GET $path HTTP/1.1\r\nHost: localhost\r\n\r\n";
    sysread $socket, my $some, 1000;
    setsockopt $socket, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
    close $socket;
}

sub log_lines { my ($srv, $path) = @_; return scalar grep { $_->{request} =~ m{^GET \Q$path\E } } $srv->access_log }

sub slow_header {
    my ($srv) = @_;
    my $socket = $srv->connect_to;
    print {$socket} "GET /small.txt HTTP/1.1\r\n";
    sleep $pause_ms / 1000;
    print {$socket} "Host: localhost\r\nConnection: close\r\n\r\n";
    return RpTest::Client::read_all($socket);
}

# Two requests on one connection, one second apart.
sub pause_between {
    my ($srv) = @_;
    my $before = $srv->{keep_alive_client};
    my $first  = $srv->get('/small.txt', keep_alive => 1);
    sleep 1;
    my $second = $srv->get('/small.txt', keep_alive => 1);
    my ($x, $y) = map { $srv->access_entry($_)->{pid} } $first, $second;
    return $x == $y ? 1 : 0;
}

for my $mpm (qw(prefork worker event)) {
    my $srv = RpTest->start(mpm => $mpm, %common, tls => 1);

    # event hands a connection on which the rest of a file has to be sent to its poll loop; the others wait in the write
    # itself. So does event with what is in memory already: made by a handler, or mapped from a file.
    waits_in($srv, "$mpm, file", '/sendfile/large.txt', $mpm eq 'event' ? 'drain' : 'network');
    waits_in($srv, "$mpm, mapped file", '/large.txt', 'network');
    waits_in($srv, "$mpm, made", '/made', 'network');

    for my $path ('/sendfile/large.txt', '/large.txt', '/made') {
        my $lines = log_lines($srv, $path);
        my $delta = $srv->delta(sub { gone_reader($srv, $path) for 1 .. 5;
            $srv->wait_for(sub { log_lines($srv, $path) == $lines + 5 }) });
        is log_lines($srv, $path), $lines + 5, "$mpm, $path: five downloads that the client aborts are logged";
        is $srv->requests($delta), 5, "$mpm, $path: and counted";
        is $delta->{after}{requests}{in_flight}, 0, "$mpm, $path: and are not in flight any more";
    }

    holds("$mpm: the time between two requests of a connection is in no phase", sub {
        my $delta = $srv->delta(sub { pause_between($srv) });
        return ($delta->{result} ? () : 'not one connection', miscounted($srv, $delta, 2),
            at_most('total', $srv->total_ns($delta), 500));
    });

    holds("$mpm: waiting for the rest of the header is read", sub {
        my $delta = $srv->delta(sub { slow_header($srv) });
        return (miscounted($srv, $delta, 1), at_least('read', $srv->phase_ns($delta, 'read'), 0.7 * $pause_ms),
            at_most('the rest', $srv->total_ns($delta) - $srv->phase_ns($delta, 'read'), 0.1 * $pause_ms));
    });

    my $rate = sub { my ($path) = @_; my $output = `curl -sS --limit-rate 4M -o /dev/null -w '%{http_code}' \\
        --cacert '@{[$srv->dir]}/tls.crt' https://localhost:@{[$srv->tls_port]}$path 2>&1`; return $output };
    holds("$mpm, TLS: a slow reader is network or drain, not handler", sub {
        my $delta = $srv->delta(sub { $rate->('/made') });
        my $waited = $srv->phase_ns($delta, 'network') + $srv->phase_ns($delta, 'drain');
        return ($delta->{result} eq '200' ? () : $delta->{result}, miscounted($srv, $delta, 1),
            at_least('network and drain', $waited, 100), at_most('handler', $srv->phase_ns($delta, 'handler'), 30));
    });
    $srv->sums_ok($srv->json, $mpm);
    $srv->done;
}

# A stream of HTTP/2 waits for its connection in the lowest filter of the stream.
{
    my $srv = RpTest->start(mpm => 'event', %common, http2 => 1);
    my $url = $srv->url('/made');
    holds('h2c: a slow reader is network or drain, not handler', sub {
        my $delta = $srv->delta(sub { `curl -sS --limit-rate 4M --http2-prior-knowledge -o /dev/null \\
            -w '%{http_code} %{http_version}' '$url' 2>&1` });
        my $waited = $srv->phase_ns($delta, 'network') + $srv->phase_ns($delta, 'drain');
        return ($delta->{result} eq '200 2' ? () : $delta->{result}, miscounted($srv, $delta, 1),
            at_most('all but network and drain', $srv->total_ns($delta) - $waited, 30));
    });
    $srv->sums_ok($srv->json, 'h2c');
    $srv->done;
}

done_testing;
