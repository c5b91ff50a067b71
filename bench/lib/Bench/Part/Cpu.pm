package Bench::Part::Cpu;

# Processor time a request and throughput at saturation, in interleaved runs against a bare server.

use strict;
use warnings;
use Bench::Build;
use Bench::Load;
use Bench::Part;
use Bench::Stats;
use JSON::PP ();
use HTTP::Tiny;

# Where a number of requests stands, processor time is measured in that many slices more, else in the runs of wrk.
my @workloads = (
    { name => 'small file', path => '/small.txt', rounds => 8, slices => 60, requests => 2500,
        variants => [ 'reqprof off', 'bare 2' ] },
    { name => '40 kB deflated', path => '/page.html', rounds => 6, load => { headers => { 'Accept-Encoding' => 'gzip' } } },
    { name => 'proxied', path => '/proxied/small.txt', rounds => 4, slices => 20, requests => 1500 },
    { name => '5 ms page', path => '/sleeper', rounds => 5, load => { connections => 40 } },
);

sub rows {
    my (%arg) = @_;
    return Bench::Load::on_client_side(sub { all_workloads(%arg) });
}

sub all_workloads {
    my (%arg)   = @_;
    my $backend = Bench::Server->start(variant => 'bare');
    my $port    = $backend->port;
    my @more    = (modules => [ 'proxy', 'proxy_http', Bench::Build::module('sleeper', 'sleeper') ],
        conf => "ProxyPass \"/proxied/\" \"http://127.0.0.1:$port/\"\n"
            . "<Location \"/sleeper\">\nSetHandler bench-sleeper\n</Location>\n");
    my @rows = map { of_workload($_, \@more, %arg) } $arg{quick} ? $workloads[0] : @workloads;
    $backend->stop;
    return @rows;
}

sub of_workload {
    my ($workload, $more, %arg) = @_;
    my ($name, $path) = @$workload{qw(name path)};
    my $part     = $arg{quick} ? 0.25 : 1;
    my @variants = ('bare', 'ExtendedStatus', 'reqprof spans', @{ $workload->{variants} || [] });
    my $servers  = Bench::Load::start(variants => \@variants, @$more);
    my $two      = { map { $_ => $servers->{$_} } 'bare', 'reqprof spans' };
    my $all      = $workload->{slices} ? $two : $servers;
    my $rounds   = Bench::Load::rounds($all, $part * $workload->{rounds}, path => $path, %{ $workload->{load} || {} });
    my $slices   = $workload->{slices}
        ? Bench::Load::rounds($servers, $part * $workload->{slices}, path => $path, requests => $workload->{requests},
            within_s => $arg{quick} ? 25 : 120)
        : $rounds;
    my @rows = (cpu_rows($name, $slices, @variants), throughput_rows($name, $rounds));
    push @rows, half_load_rows($workload, $two, $rounds, %arg), estimate_rows($servers, $slices) if $path eq '/small.txt';
    Bench::Load::stop($servers);
    return @rows;
}

sub ratio_text { return Bench::Stats::text('%.3f', Bench::Load::ratios(@_)) }

sub cpu_rows {
    my ($name, $rounds, @variants) = @_;
    my %median = map { $_ => Bench::Stats::median(Bench::Load::ratios($rounds, $_, 'cpu_ns')) } @variants;
    my %title  = ('bare 2' => 'another bare server (noise)', 'reqprof off' => 'ReqProf Off', ExtendedStatus =>
        'ExtendedStatus On');
    return (
        Bench::Part::at_most("$name: CPU, all spans, to bare", $median{'reqprof spans'}, 1.01,
            ratio_text($rounds, 'reqprof spans', 'cpu_ns')),
        map { Bench::Part::fact("$name: CPU, $title{$_}, to bare", ratio_text($rounds, $_, 'cpu_ns')) }
            grep { $title{$_} } @variants
    );
}

sub throughput_rows {
    my ($name, $rounds) = @_;
    my $median = Bench::Stats::median(Bench::Load::ratios($rounds, 'reqprof spans', 'per_second'));
    return (
        Bench::Part::at_least("$name: requests/s at saturation, all spans, to bare", $median, 0.99,
            ratio_text($rounds, 'reqprof spans', 'per_second')),
        Bench::Part::fact("$name: p99 at saturation, all spans, to bare",
            ratio_text($rounds, 'reqprof spans', 'p99_us')),
    );
}

# Connections that pause between requests: half of what saturates the server.
sub half_load_rows {
    my ($workload, $servers, $rounds, %arg) = @_;
    my $per_second = Bench::Stats::median(map { $_->{bare}{per_second} } @$rounds);
    my $pause_ms   = int(40 * 1000 / ($per_second / 2) + 0.5) || 1;
    my $script     = "$Bench::Build::OUT/pause.lua";
    RpTest::Conf::write_file($script, "function delay() return $pause_ms end\n");
    my $half = Bench::Load::rounds($servers, $arg{quick} ? 2 : 6, path => $workload->{path},
        connections => 40, script => $script);
    my $name = "$workload->{name}: at half load";
    my $load = Bench::Stats::median(map { $_->{bare}{per_second} } @$half) / $per_second;
    return (
        Bench::Part::fact(sprintf('%s (%.2f), p99, all spans, to bare', $name, $load),
            ratio_text($half, 'reqprof spans', 'p99_us')),
        Bench::Part::fact("$name, CPU, all spans, to bare", ratio_text($half, 'reqprof spans', 'cpu_ns')),
    );
}

# What the module says of itself, against what was measured.
sub estimate_rows {
    my ($servers, $rounds) = @_;
    my $answer = HTTP::Tiny->new->get($servers->{'reqprof spans'}->url('/reqprof-status?format=json'));
    return Bench::Part::skipped('own estimate of the cost', $answer->{status}) if !$answer->{success};
    my $profiler = JSON::PP::decode_json($answer->{content})->{profiler};
    my $own_ns   = $profiler->{cost_ns_per_request} // 0;
    my $found_ns = Bench::Stats::median(Bench::Load::differences($rounds, 'reqprof spans', 'cpu_ns'));
    my $text     = sprintf '%.2f (%.0f of %.0f ns)', $own_ns / $found_ns, $own_ns, $found_ns;
    my $off      = abs($own_ns / $found_ns - 1);
    return [ 'own estimate of the cost, to CPU added', $text, '0.75 to 1.25',
        $off <= 0.25 ? 'met' : sprintf('not met, by %.2g', $off - 0.25) ];
}

1;
