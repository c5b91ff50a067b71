package Bench::Part::Growth;

# What becomes of the cost when the configuration grows: instructions that all spans add to a request of a bare server
# with the same configuration.

use strict;
use warnings;
use Bench::Callgrind;
use Bench::Load;
use Bench::Part;
use Bench::Scale;
use Bench::Stats;
use Bench::Table;

sub rows {
    my (%arg) = @_;
    return links_rows(%arg) if $arg{quick};
    return (threads_rows(), links_rows(%arg), rules_rows(), vhosts_rows());
}

sub links_rows {
    my (%arg) = @_;
    my %added = map { $_ => added(modules => [ Bench::Scale::link_modules($_) ]) } 0, 8, 20;
    my @rows = map { Bench::Part::fact(sprintf('%d more links: all spans add', 8 * $_), Bench::Table::difference($added{$_})) }
        8, 20;
    push @rows, Bench::Part::fact('instructions each more link adds', sprintf '%+.1f', ($added{20} - $added{0}) / 160);
    return @rows;
}

sub rules_rows {
    return map { Bench::Part::fact("$_ SetEnvIf lines: all spans add",
        Bench::Table::difference(added(conf => Bench::Scale::rules($_)))) } 0, 500, 7000;
}

sub vhosts_rows {
    return map { Bench::Part::fact("virtual hosts, $_: all spans add",
        Bench::Table::difference(added(conf => Bench::Scale::vhosts($_)))) } 1, 50, 500;
}

sub added {
    my $counted = Bench::Callgrind::count_all(mpm => 'prefork', requests => 200, @_, variants => [ 'bare', 'reqprof spans' ]);
    return $counted->{'reqprof spans'}{total} - $counted->{bare}{total};
}

# The same load on one child with many threads, on some, and on processes only.
sub threads_rows {
    my @shapes = (
        [ 'event, 1 child of 64 threads', mpm => 'event', mpm_conf => "StartServers 1\nServerLimit 1\nThreadsPerChild 64\n"
            . "MinSpareThreads 1\nMaxSpareThreads 64\nMaxRequestWorkers 64\n" ],
        [ 'event, 8 children of 8 threads', mpm => 'event', mpm_conf => "StartServers 8\nServerLimit 8\nThreadsPerChild 8\n"
            . "MinSpareThreads 1\nMaxSpareThreads 64\nMaxRequestWorkers 64\n" ],
        [ 'prefork, 64 children', mpm => 'prefork', mpm_conf => "StartServers 64\nMinSpareServers 64\nMaxSpareServers 64\n"
            . "MaxRequestWorkers 64\n" ],
    );
    return Bench::Load::on_client_side(sub { map { threads_row(@$_) } @shapes });
}

sub threads_row {
    my ($name, %arg) = @_;
    my $servers = Bench::Load::start(%arg, variants => [ 'bare', 'reqprof spans' ]);
    my $rounds  = Bench::Load::rounds($servers, 6, path => '/small.txt', connections => 32);
    Bench::Load::stop($servers);
    return Bench::Part::fact("$name: CPU, all spans, to bare",
        Bench::Stats::text('%.3f', Bench::Load::ratios($rounds, 'reqprof spans', 'cpu_ns')));
}

1;
