package Bench::Part::Record;

# The parts that need no httpd: a transition against a clock read, and counting from many threads.

use strict;
use warnings;
use Bench::Build;
use Bench::Part;

sub rows {
    my (%arg)  = @_;
    my $record = build();
    my ($clock_ns, $transition_ns, $clock) = split ' ', run($record, 'clock');
    my @rows = Bench::Part::at_most("a transition, to a clock read ($clock)", $transition_ns / $clock_ns, 1.3);
    my ($one, @more) = map { [ split ' ', run($record, 'threads', $_) ] } $arg{quick} ? (1, 2, 16) : (1, 2, 4, 8, 16, 32, 64);
    for my $got (@more) {
        push @rows, Bench::Part::fact("counting a request, $got->[0] threads to 1: CPU, calls/s, dropped",
            sprintf '%.2f, %.2f, %d', $got->[1] / $one->[1], $got->[2] / $one->[2], $got->[3]);
    }
    return @rows;
}

sub build {
    my $repo = $RpTest::Build::REPO;
    my $out  = "$Bench::Build::OUT/record";
    Bench::Build::compile("-I$repo", "-I$repo/src", split(' ', `apr-1-config --includes --cppflags`), '-o', $out,
        "$repo/bench/record.c", glob("$repo/src/base/*.c"), glob("$repo/src/store/*.c"),
        split(' ', `apr-1-config --link-ld` . ' ' . `apu-1-config --link-ld`), '-lpthread', '-lm');
    return $out;
}

sub run {
    my (@command) = @_;
    open my $pipe, '-|', @command or die "@command: $!\n";
    my $line = <$pipe> // '';
    close $pipe or die "@command failed\n";
    return $line;
}

1;
