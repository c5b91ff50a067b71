package RpTest::Load;

# Runs ab, wrk and h2load and returns what they counted.

use strict;
use warnings;

sub run_tool {
    my (@command) = @_;
    my $pid = open(my $pipe, '-|') // die "fork: $!\n";
    if (!$pid) {
        open STDERR, '>&', \*STDOUT;
        exec { $command[0] } @command or POSIX::_exit(127);
    }
    my $output = do { local $/; <$pipe> } // '';
    close $pipe;
    die "@command failed (status $?):\n$output" if $?;
    return $output;
}

# ab(requests =>, concurrency =>, path =>, keep_alive =>, headers => {}, args => [])
# returns {complete, failed, non_2xx, write_errors, per_second, percentiles_ms => {50 => ..., 100 => ...}, output}
sub ab {
    my ($self, %arg) = @_;
    my %headers = %{ $arg{headers} || {} };
    my $output = run_tool('ab', '-q', '-l', '-n', $arg{requests} || 100, '-c', $arg{concurrency} || 4,
        $arg{keep_alive} ? '-k' : (), (map { ('-H', "$_: $headers{$_}") } sort keys %headers), @{ $arg{args} || [] },
        "http://127.0.0.1:" . ($arg{port} || $self->{port}) . ($arg{path} || '/'));
    my %got = (output => $output, percentiles_ms => {});
    ($got{complete})     = $output =~ /^Complete requests:\s+(\d+)/m;
    ($got{failed})       = $output =~ /^Failed requests:\s+(\d+)/m;
    ($got{per_second})   = $output =~ /^Requests per second:\s+([\d.]+)/m;
    ($got{non_2xx})      = $output =~ /^Non-2xx responses:\s+(\d+)/m     ? $1 : 0;
    ($got{write_errors}) = $output =~ /^Write errors:\s+(\d+)/m          ? $1 : 0;
    $got{percentiles_ms}{$1} = $2 while $output =~ /^\s+(\d+)%\s+(\d+)/mg;
    return \%got;
}

# wrk(seconds =>, threads =>, connections =>, path =>, headers => {}, script => FILE)
# returns {complete, per_second, non_2xx, socket_errors, output}
sub wrk {
    my ($self, %arg) = @_;
    my %headers = %{ $arg{headers} || {} };
    my $output = run_tool('wrk', '-d', ($arg{seconds} || 1) . 's', '-t', $arg{threads} || 1, '-c',
        $arg{connections} || 4, '--latency', (map { ('-H', "$_: $headers{$_}") } sort keys %headers),
        $arg{script} ? ('-s', $arg{script}) : (),
        "http://127.0.0.1:" . ($arg{port} || $self->{port}) . ($arg{path} || '/'));
    my %got = (output => $output, socket_errors => 0);
    ($got{complete})   = $output =~ /(\d+) requests in/;
    ($got{per_second}) = $output =~ m{Requests/sec:\s+([\d.]+)};
    ($got{non_2xx})    = $output =~ /Non-2xx or 3xx responses: (\d+)/ ? $1 : 0;
    if ($output =~ /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/) {
        $got{socket_errors} = $1 + $2 + $3 + $4;
    }
    return \%got;
}

# h2load(requests =>, clients =>, streams =>, path =>, tls => 1, args => [])
# returns {total, started, done, succeeded, failed, errored, timeout, by_status => {'2xx' => ...}, output}
sub h2load {
    my ($self, %arg) = @_;
    my $base = $arg{tls} ? "https://localhost:$self->{tls_port}" : "http://127.0.0.1:$self->{port}";
    my $output = run_tool('h2load', '-n', $arg{requests} || 100, '-c', $arg{clients} || 2, '-m', $arg{streams} || 4,
        @{ $arg{args} || [] }, $base . ($arg{path} || '/'));
    my %got = (output => $output, by_status => {});
    my ($counts) = $output =~ /^requests: (.*)/m;
    while (($counts // '') =~ /(\d+) (total|started|done|succeeded|failed|errored|timeout)/g) { $got{$2} = $1 }
    my ($codes) = $output =~ /^status codes: (.*)/m;
    $got{by_status}{$2} = $1 while ($codes // '') =~ /(\d+) (\dxx)/g;
    return \%got;
}

1;
