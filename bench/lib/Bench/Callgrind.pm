package Bench::Callgrind;

# Counts instructions of httpd -X under callgrind.

use strict;
use warnings;
use List::Util qw(sum0);
use Time::HiRes qw(sleep);
use Bench::Build;
use Bench::Client;
use Bench::Server;
use Bench::Table;

use constant FEW => 200;

my @variants = ('bare', 'ExtendedStatus', 'reqprof spans', 'reqprof phases', 'reqprof off');

sub variants { return @variants }

# count_all(variants => [...], mpm =>, requests =>, path =>, conf =>, modules =>): {variant => {total, functions}}.
# Counts do not depend on the machine's load, so that all variants run at the same time.
sub count_all {
    my (%arg) = @_;
    my $dump = Bench::Build::module('dump', 'dump');
    my @ports = RpTest::Conf::free_ports(scalar @{ $arg{variants} });
    my %reader =
        map { $_ => start_counting(%arg, variant => $_, dump => $dump, port => shift @ports) } @{ $arg{variants} };
    return { map { $_ => finish_counting($_, $reader{$_}) } @{ $arg{variants} } };
}

# Runs count() in a process of its own, which prints "NUMBER OBJECT FUNCTION" lines.
sub start_counting {
    my (%arg) = @_;
    my $pid = open(my $reader, '-|') // die "fork: $!\n";
    return $reader if $pid;
    my $ok = eval { print count(%arg); 1 };
    print STDERR $@ if !$ok;
    exit($ok ? 0 : 1);
}

sub finish_counting {
    my ($variant, $reader) = @_;
    my %functions;
    my $total = 0;
    while (my $line = <$reader>) {
        my ($number, $object, $function) = $line =~ /^(\S+)\t(.*)\t(.*)$/ or next;
        $functions{$object}{$function} += $number;
        $total += $number;
    }
    close $reader or die "counting \"$variant\" failed\n";
    return { total => $total, functions => \%functions };
}

sub count {
    my (%arg) = @_;
    my $server = Bench::Server->start(%arg, single => 1, modules => [ $arg{dump}, @{ $arg{modules} || [] } ],
        before => [qw(valgrind -q --tool=callgrind --callgrind-out-file=@DIR@/callgrind)]);
    my $client = Bench::Client->new($server->port);
    my @counts = map { $client->get($arg{path} || "/small.txt", $_); dump_counters($server) }
        FEW, FEW, FEW + $arg{requests};    # the first fill caches and pools, and bind symbols
    $server->stop;
    my ($few, $many) = @counts[ 1, 2 ];
    return map { sprintf "%.3f\t%s\n", ($many->{$_} - ($few->{$_} // 0)) / $arg{requests}, $_ } sort keys %$many;
}

# What was counted since the last time: {"object\tfunction" => instructions of its own}.
sub dump_counters {
    my ($server) = @_;
    sleep 0.1;    # the server has logged, and waits for the next request
    open my $pipe, '+<', "$server->{dir}/dump" or die "dump: $!\n";
    syswrite $pipe, 'd';
    my $file = "$server->{dir}/callgrind." . ++$server->{dumps};
    my $whole = sub { grep { is_whole($_) } $file, glob "$file-*" };
    RpTest::Process::wait_for($whole, 60) or die "callgrind wrote no $file\n" . $server->said;
    my %count;
    read_part($_, \%count) for grep { -e } $file, glob "$file-*";
    return \%count;
}

sub is_whole {
    my ($file) = @_;
    open my $in, '<', $file or return 0;
    local $/;
    return <$in> =~ /^totals: \d+/m;
}

# The format is in valgrind's manual, "Callgrind Format Specification".
sub read_part {
    my ($file, $count) = @_;
    my (%object_name, %function_name);
    my ($object, $function, $is_call) = ('', '', 0);
    open my $in, '<', $file or die "$file: $!\n";
    while (my $line = <$in>) {
        if (my ($called, $object_id, $object_path) = $line =~ /^(c?)ob=\((\d+)\)(?: (.*))?/) {
            $object_name{$object_id} = $object_path =~ s{.*/}{}r if defined $object_path;
            $object = $object_name{$object_id} if !$called;
        }
        elsif (my ($callee, $id, $name) = $line =~ /^(c?)fn=\((\d+)\)(?: (.*))?/) {
            $function_name{$id} = same_name($name) if defined $name;
            $function = $function_name{$id} if !$callee;
        }
        elsif ($line =~ /^calls=/) {
            $is_call = 1;    # the next line is the cost of what was called
        }
        elsif ($line =~ /^(?:\+|-)?(?:\d+|\*)? ?(\d+)$/) {
            $count->{"$object\t$function"} += $1 if !$is_call;
            $is_call = 0;
        }
    }
}

# Callgrind tells levels of recursion apart, and each of our wrappers is a function.
sub same_name {
    my ($name) = @_;
    return $name =~ s/'\d+$//r =~ s/_wrapper_0x\w+$/_wrapper_N/r;
}

sub table {
    my ($counted, @names) = @_;
    my $bare = $counted->{bare}{total};
    return Bench::Table::text([ 'variant', 'instructions', 'to bare', 'ratio' ], map {
        my $total = $counted->{$_}{total};
        [ $_, Bench::Table::count($total), Bench::Table::difference($total - $bare), sprintf '%.4f', $total / $bare ]
    } @names);
}

# Our functions by cost, then others whose own cost differs.
sub functions_table {
    my ($with, $bare) = @_;
    my $object = RpTest::Build::module() =~ s{.*/}{}r;
    my $own    = $with->{functions}{$object} || {};
    my @rows   = map { [ $_, Bench::Table::count($own->{$_}) ] } sort { $own->{$b} <=> $own->{$a} } keys %$own;
    push @rows, [ 'all of it', Bench::Table::count(sum0(values %$own)) ];
    return Bench::Table::text([ $object, 'instructions' ], @rows) . "\n" . elsewhere($with, $bare, $object);
}

sub elsewhere {
    my ($with, $bare, $ours) = @_;
    my %change;
    for my $side ([ 1, $with->{functions} ], [ -1, $bare->{functions} ]) {
        my ($sign, $functions) = @$side;
        for my $object (grep { $_ ne $ours } keys %$functions) {
            $change{"$_ ($object)"} += $sign * $functions->{$object}{$_} for keys %{ $functions->{$object} };
        }
    }
    my @names = sort { abs $change{$b} <=> abs $change{$a} } grep { abs $change{$_} >= 2 } keys %change;
    return Bench::Table::text([ 'elsewhere', 'difference' ], map { [ $_, Bench::Table::difference($change{$_}) ] } @names);
}

1;
