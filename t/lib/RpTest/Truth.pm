package RpTest::Truth;

# Is a known time where it was spent, and nowhere else? Written for tests with a ruler.
#
#     use RpTest::Truth;
#
#     my $grown = spent_in($srv, 'fixups', { phase => 'fixup', owner => 'mod_ruler' }, 60,
#         sub { $srv->get('/', headers => { 'X-Ruler' => 'where=fixups;ms=60' }) });
#
# Lower bounds hold at each try. Upper bounds hold on an idle machine only, so the best of several tries counts.

use strict;
use warnings;
use Exporter qw(import);
use Test::More;
use RpTest::Process;

our @EXPORT = qw(growth grown_ns spent_in best_of tries);

# A machine that runs several tests at once disturbs a few tries in a row; valgrind's slowness disturbs all.
sub tries { return 8 }

sub name_of { my ($row) = @_; return join ' ', map { $row->{$_} // '' } qw(phase kind hook owner target) }

# By how much each span grew between the two reports of a delta: [{phase, kind, hook, owner, target, ns, count}, ...],
# the time outside of any span (phase other) included. Spans of one name are one.
sub growth {
    my ($srv, $delta) = @_;
    my %grown;
    for my $side ([after => 1], [before => -1]) {
        my ($when, $sign) = @$side;
        for my $row (@{ $delta->{$when}{spans} }) {
            my $sum = $grown{ name_of($row) } ||= { %$row, ns => 0, count => 0 };
            $sum->{ns}    += $sign * $row->{self}{sum_ns};
            $sum->{count} += $sign * $row->{self}{count};
        }
    }
    my @rows = grep { $_->{phase} ne 'other' } values %grown;
    return [@rows, { phase => 'other', kind => '', hook => '', owner => 'other', ns => $srv->phase_ns($delta, 'other'),
        count => $srv->phase_count($delta, 'other') }];
}

sub wanted { my ($row, $which) = @_; return !grep { !RpTest::Report::matches($row->{$_}, $which->{$_}) } keys %$which }

# Time of the rows of growth() that are as wanted.
sub grown_ns {
    my ($rows, %which) = @_;
    my $ns = 0;
    $ns += $_->{ns} for grep { wanted($_, \%which) } @$rows;
    return $ns;
}

# Asks until the sub's answer, a list of complaints, is empty; at most tries() times. Returns the last complaints.
sub best_of {
    my ($sub) = @_;
    my @complaints;
    for (1 .. tries()) {
        @complaints = $sub->() or return;
    }
    return @complaints;
}

# Spans other than the wanted ones that took a tenth of the time or more.
sub strays {
    my ($rows, $which, $limit_ns, $allowed) = @_;
    my @others = grep { my $row = $_; !grep { wanted($row, $_) } $which, @$allowed } @$rows;
    return map { sprintf '%s: %.1f ms', name_of($_), $_->{ns} / 1e6 } grep { $_->{ns} >= $limit_ns } @others;
}

# Three tests: the time is in the wanted span, each try; no other span has a tenth of it, at the best try; and the
# requests are counted. Returns growth() of the last try. Options: requests => 1, allowed => [{span}, ...] that may
# have taken time too.
sub spent_in {
    my ($srv, $name, $which, $ms, $ask, %arg) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($rows, @too_short, @miscounted);
    my $requests = $arg{requests} // 1;
    my @strays   = best_of(sub {
        my $delta = $srv->delta($ask);
        $rows = growth($srv, $delta);
        my $ns = grown_ns($rows, %$which);
        push @too_short,  sprintf '%.3f ms', $ns / 1e6 if $ns < $ms * 1e6;
        push @miscounted, $srv->requests($delta)       if $srv->requests($delta) != $requests;
        return @too_short || @miscounted ? () : strays($rows, $which, $ms * 1e5, $arg{allowed} || []);
    });
    ok !@too_short, "$name: $ms ms or more are in $which->{phase}, where they were spent"
        or diag "only @too_short; ", join "\n", strays($rows, {}, 1e6, []), map { name_of($_) . " $_->{ns}" } @$rows;
    ok !@strays, "$name: nothing else has a tenth of them" or diag join "\n", @strays;
    ok !@miscounted, "$name: each request is counted once" or diag "@miscounted instead of $requests";
    return $rows;
}

1;
