package RpTest::Report;

# Reads the profiler's report and does arithmetic with it.

use strict;
use warnings;
use JSON::PP;
use Math::BigInt;
use Test::More ();
use Time::HiRes qw(time);
use RpTest::Process;

sub status {
    my ($self, $query) = @_;
    my $response = $self->get('/reqprof-status' . (length($query // '') ? "?$query" : ''),
        port => $self->{arg}{status_vhost} ? $self->{status_port} : $self->{port});
    die "/reqprof-status?$query answered $response->{status}: $response->{content}\n" if $response->{status} != 200;
    return $response->{content};
}

sub with_format { my ($format, $query) = @_; return "format=$format" . (length($query // '') ? "&$query" : '') }

# The report as text, and as data. JSON::PP keeps integers that do not fit into a double.
sub text { my ($self, $query) = @_; return status($self, with_format('text', $query)) }
sub json { my ($self, $query) = @_; return JSON::PP->new->utf8->decode(status($self, with_format('json', $query))) }

# Reads JSON until nothing else is in flight and each reading adds just itself. Returns (json, number of readings).
sub settle {
    my ($self, $query) = @_;
    my $step     = $self->{arg}{status_vhost} ? 0 : 1;
    my $readings = 1;
    my $json     = json($self, $query);
    my $stable   = RpTest::Process::wait_for(sub {
        my $count = $json->{requests}{count};
        $json = json($self, $query);
        $readings++;
        return $json->{requests}{in_flight} <= $step && $json->{requests}{count} == $count + $step;
    }, 10);
    die "requests.count did not settle: $json->{requests}{count}, $json->{requests}{in_flight} in flight\n" if !$stable;
    return ($json, $readings);
}

# Runs a sub between two settled reports. Returns {before, after, own, result}: "own" is how many requests between
# them were the readings themselves (0 with status_vhost).
sub delta {
    my ($self, $sub, %arg) = @_;
    my ($before) = settle($self, $arg{query});
    my $result = $sub->();
    my ($after, $readings) = settle($self, $arg{query});
    return { before => $before, after => $after, result => $result, own => $self->{arg}{status_vhost} ? 0 : $readings };
}

sub matches {
    my ($value, $wanted) = @_;
    return 0 if !defined $value;
    return ref $wanted eq 'Regexp' ? $value =~ $wanted : $value eq $wanted;
}

# The rows of json.spans whose fields are as wanted: spans($json, hook => 'fixups', owner => qr/ruler/, kind => 'hook')
sub spans {
    my ($self, $json, %wanted) = @_;
    return grep { my $row = $_; !grep { !matches($row->{$_}, $wanted{$_}) } keys %wanted } @{ $json->{spans} };
}

# The one span that is wanted; undef when there is none, and it dies when there are several.
sub span {
    my ($self, $json, %wanted) = @_;
    my @found = spans($self, $json, %wanted);
    die 'several spans: ' . join(', ', map { "$_->{hook}/$_->{owner}/$_->{kind}" } @found) . "\n" if @found > 1;
    return $found[0];
}

sub phase {
    my ($self, $json, $name) = @_;
    return (grep { $_->{phase} eq $name } @{ $json->{phases} })[0];
}

# Exact sum of a field of self over rows.
sub add_up {
    my ($field, @rows) = @_;
    my $sum = Math::BigInt->new(0);
    $sum->badd($_->{self}{$field}) for @rows;
    return $sum;
}

# phase_ns($delta, 'deflate'): by how much the phase's self time grew; span_ns($delta, hook => ...) likewise, over all
# spans that match. *_count: by how many requests.
sub phase_ns    { my ($self, $delta, $name) = @_; return phase_grew($self, $delta, $name, 'sum_ns') }
sub phase_count { my ($self, $delta, $name) = @_; return phase_grew($self, $delta, $name, 'count') }
sub span_ns     { my ($self, $delta, %wanted) = @_; return spans_grew($self, $delta, 'sum_ns', %wanted) }
sub span_count  { my ($self, $delta, %wanted) = @_; return spans_grew($self, $delta, 'count', %wanted) }

sub phase_grew {
    my ($self, $delta, $name, $field) = @_;
    my @row = map { phase($self, $delta->{$_}, $name) // die "no phase \"$name\"\n" } qw(after before);
    return $row[0]{self}{$field} - $row[1]{self}{$field};
}

sub spans_grew {
    my ($self, $delta, $field, %wanted) = @_;
    my ($after, $before) = map { add_up($field, spans($self, $delta->{$_}, %wanted)) } qw(after before);
    return $after->bsub($before)->numify;
}

sub total_ns { my ($self, $delta) = @_; return $delta->{after}{total}{sum_ns} - $delta->{before}{total}{sum_ns} }

# Requests between the two reports that were not the readings themselves.
sub requests {
    my ($self, $delta) = @_;
    return $delta->{after}{requests}{count} - $delta->{before}{requests}{count} - $delta->{own};
}

# The spans' sums by phase. Time outside of any span has no row of its own: it is the phase "other" itself.
sub sums_of_spans {
    my ($json) = @_;
    my %sum = map { $_->{phase} => add_up('sum_ns')->bstr } @{ $json->{phases} };
    for my $span (@{ $json->{spans} }) {
        $sum{ $span->{phase} } = Math::BigInt->new($sum{ $span->{phase} })->badd($span->{self}{sum_ns})->bstr;
    }
    return { %sum, other => (map { "$_->{self}{sum_ns}" } grep { $_->{phase} eq 'other' } @{ $json->{phases} })[0] };
}

# Two tests: phases add up to the total, and spans to their phases, to the nanosecond.
sub sums_ok {
    my ($self, $json, $name) = @_;
    $name //= 'report';
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $phases = Test::More::is(add_up('sum_ns', @{ $json->{phases} })->bstr, "$json->{total}{sum_ns}",
        "$name: phases add up to the total");
    my %phase = map { $_->{phase} => "$_->{self}{sum_ns}" } @{ $json->{phases} };
    my $spans = Test::More::is_deeply(sums_of_spans($json), \%phase, "$name: spans add up to their phases");
    return $phases && $spans;
}

1;
