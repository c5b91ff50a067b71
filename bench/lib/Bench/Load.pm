package Bench::Load;

# Puts servers that differ in one thing under the same load, in turns.

use strict;
use warnings;
use List::Util qw(shuffle);
use RpTest::Load;
use Bench::Server;
use Bench::Usage;

our $CPUS = (() = glob '/sys/devices/system/cpu/cpu[0-9]*');

# Servers on one processor, what asks them on another.
sub server_side { return $CPUS > 1 ? [qw(taskset -c 0)] : [] }

# Runs a sub with this process, and what it starts, on that other one.
sub on_client_side {
    my ($sub) = @_;
    system("taskset -cp 1 $$ >/dev/null 2>&1") if $CPUS > 1;
    my @got = eval { $sub->() };
    my $error = $@;
    system('taskset -cp 0-' . ($CPUS - 1) . " $$ >/dev/null 2>&1") if $CPUS > 1;
    die $error if $error;
    return @got;
}

# start(variants => [...], ...): {variant => server}; "bare 2" is another bare one, and shows what noise makes.
sub start {
    my (%arg) = @_;
    return { map { $_ => Bench::Server->start(%arg, variant => s/ 2$//r, before => server_side()) } @{ $arg{variants} } };
}

sub stop { $_->stop for values %{ $_[0] } }

# One run of wrk: {per_second, p99_us, cpu_ns (a request of the server)}.
sub run {
    my ($server, %load) = @_;
    my $before = Bench::Usage::cpu_ns($server);
    my $got    = RpTest::Load::wrk($server, seconds => 1, connections => 16, %load);
    my $used   = Bench::Usage::cpu_ns($server) - $before;
    # A busy server closes idle connections, which wrk counts as read errors.
    die "wrk had errors:\n$got->{output}" if $got->{non_2xx} || $got->{socket_errors} * 100 > $got->{complete};
    my ($p99, $unit) = $got->{output} =~ /^\s+99%\s+([\d.]+)(us|ms|s)$/m;
    return { per_second => $got->{per_second}, cpu_ns => $used / $got->{complete},
        p99_us => $p99 * { us => 1, ms => 1e3, s => 1e6 }->{$unit} };
}

# A short run of a known number of requests, which keeps turns short where the machine does other things, too:
# {per_second, cpu_ns}.
sub slice {
    my ($server, %load) = @_;
    my $before = Bench::Usage::cpu_ns($server);
    my $got    = RpTest::Load::ab($server, concurrency => 16, keep_alive => 1, %load);
    die "ab had errors:\n$got->{output}" if $got->{failed} || $got->{non_2xx};
    return { per_second => $got->{per_second}, cpu_ns => (Bench::Usage::cpu_ns($server) - $before) / $got->{complete} };
}

# rounds(servers, count, load): [{variant => result}, ...], each round in another order. A first one is thrown away.
# Load with a number of requests is run in slices. After within_s seconds no further round begins, but three there are.
sub rounds {
    my ($servers, $count, %load) = @_;
    my $run = $load{requests} ? \&slice : \&run;
    my $end = time + (delete $load{within_s} // 60);
    my @rounds;
    for (0 .. $count) {
        last if @rounds > 3 && time > $end;
        push @rounds, { map { $_ => $run->($servers->{$_}, %load) } shuffle keys %$servers };
    }
    shift @rounds;
    return \@rounds;
}

# A variant's value divided by bare's of the same round, for all rounds.
sub ratios {
    my ($rounds, $variant, $what) = @_;
    return map { $_->{$variant}{$what} / $_->{bare}{$what} } @$rounds;
}

sub differences {
    my ($rounds, $variant, $what) = @_;
    return map { $_->{$variant}{$what} - $_->{bare}{$what} } @$rounds;
}

1;
