package Bench::Part::Memory;

# Memory a child after it has served, and the time a start takes.

use strict;
use warnings;
use List::Util qw(shuffle);
use Time::HiRes qw(time);
use Bench::Load;
use Bench::Part;
use Bench::Stats;
use Bench::Usage;

sub rows {
    my (%arg) = @_;
    return ((map { memory_rows($_, %arg) } 'event', 'prefork'), start_rows(%arg));
}

sub memory_rows {
    my ($mpm, %arg) = @_;
    my $children = $mpm eq 'prefork' ? 16 : 2;
    my $mpm_conf = $mpm eq 'prefork' ? "StartServers 16\nMinSpareServers 16\nMaxSpareServers 16\nMaxRequestWorkers 16\n" : '';
    my $servers  = Bench::Load::start(mpm => $mpm, mpm_conf => $mpm_conf, variants => [ 'bare', 'reqprof spans' ]);
    my %used;
    for my $variant (keys %$servers) {
        Bench::Load::run($servers->{$variant}, path => '/small.txt', connections => 32);
        $used{$variant} = Bench::Usage::memory($servers->{$variant});
    }
    Bench::Load::stop($servers);
    my %kib = map { $_ => ($used{'reqprof spans'}{$_} - $used{bare}{$_}) / 1024 / $children } qw(shared private);
    return (
        Bench::Part::at_most("$mpm, $children children: shared memory touched a child, KiB", $kib{shared}, 256,
            sprintf '%+.0f', $kib{shared}),
        Bench::Part::fact("$mpm, $children children: private memory a child, KiB", sprintf '%+.0f', $kib{private}),
    );
}

sub start_rows {
    my (%arg) = @_;
    my @differences;
    for (1 .. ($arg{quick} ? 3 : 9)) {
        my %took_ms = map { $_ => start_ms($_) } shuffle 'bare', 'reqprof spans';
        push @differences, $took_ms{'reqprof spans'} - $took_ms{bare};
    }
    return Bench::Part::fact('start until it serves, ms', Bench::Stats::text('%+.0f', @differences));
}

sub start_ms {
    my ($variant) = @_;
    my $began  = time;
    my $server = Bench::Server->start(variant => $variant);
    my $ms     = 1000 * (time - $began);
    $server->stop;
    return $ms;
}

1;
