# How long connections wait before httpd takes them, and what happens when the accept queue is full.

use strict;
use warnings;
use Test::More;
use RpTest;

plan skip_all => 'the kernel does not say' if $^O ne 'linux';

my %workers = (mpm => 'prefork', status_vhost => 1, modules => ['ruler'], access_log => 0);

# Little's law: 300 clients in the system at X requests a second stay 300 / X seconds each; what is not served waits.
{
    my $srv = RpTest->start(%workers, allow_log => qr/AH00161/, conf => qq{Ruler "where=handler;ms=10"\n}, mpm_conf => {
        StartServers => 20, MinSpareServers => 20, MaxSpareServers => 20, ServerLimit => 21, MaxRequestWorkers => 21 });
    my $delta = $srv->delta(sub { $srv->ab(requests => 6000, concurrency => 300, path => '/small.txt') });
    my $ab    = $delta->{result};
    my $queue = $delta->{after}{queue};
    my $said  = 300 / $ab->{per_second} - $delta->{after}{total}{mean_ns} / 1e9;
    cmp_ok $queue->{count}, '>=', 6000, 'each connection is in the queue histogram';
    cmp_ok $queue->{p}{50} / 1e9, '>', 0.8 * $said, "half of them waited as long as Little's law says"
        or diag "$said s said, $queue->{p}{50} ns seen";
    cmp_ok $queue->{p}{50} / 1e9, '<', 1.2 * $said, 'within a fifth';
    my $json = $srv->json;
    cmp_ok $json->{workers}{max}, '==', 21, 'the limit of workers is known';
    cmp_ok $json->{workers}{all_busy_s}, '<=', $json->{server}{uptime_s} + 1,
        'all workers were busy for no longer than it runs';
    $srv->done;
}

# One worker and a short queue: connections are refused, and counted.
{
    my $srv = RpTest->start(%workers, status_vhost => 0, allow_log => qr/AH00161/,
        conf => qq{ListenBacklog 10\n<Location "/slow">\nRuler "where=handler;ms=100"\n</Location>\n},
        mpm_conf => { StartServers => 2, MinSpareServers => 1, ServerLimit => 2, MaxRequestWorkers => 2 });
    my $load = $srv->background(sub { $srv->ab(requests => 60, concurrency => 40, path => '/slow/')->{complete} });
    is $load->wait, 60, 'all are served in the end';
    my $listen = $srv->wait_for(sub { my ($l) = grep { $_->{address} =~ /:@{[$srv->port]}$/ } @{ $srv->json->{listen} };
        $srv->json->{kernel}{listen_overflows} && $l }, 15);
    ok $listen, 'connections found the accept queue full';
    is $listen->{queue_limit}, 10, 'its limit is ListenBacklog';
    cmp_ok $listen->{queue_longest}, '>=', 10, 'it was seen full';
    my $json = $srv->json;
    cmp_ok $json->{kernel}{listen_drops}, '>=', $json->{kernel}{listen_overflows}, 'each of them was dropped';
    cmp_ok $json->{workers}{all_busy_s}, '>', 0.5, 'and for some time all workers were busy';
    ok +(grep { /^The accept queue of \S+ holds 10 connections and was full/ } @{ $json->{findings} }),
        'a sentence explains it'
        or diag explain $json->{findings};
    cmp_ok $json->{queue}{max_ns}, '>', 100e6, 'connections waited longer than a request takes';
    $srv->done;
}

done_testing;
