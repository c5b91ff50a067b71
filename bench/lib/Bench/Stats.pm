package Bench::Stats;

use strict;
use warnings;

sub median { return quantile(0.5, @_) }

sub quantile {
    my ($q, @values) = @_;
    @values = sort { $a <=> $b } @values;
    my $at    = $q * $#values;
    my $below = int $at;
    my $above = $below < $#values ? $below + 1 : $below;
    return $values[$below] + ($at - $below) * ($values[$above] - $values[$below]);
}

# "1.012 (1.004..1.020)": the median and the middle half.
sub text {
    my ($format, @values) = @_;
    return sprintf "$format ($format..$format)", map { quantile($_, @values) } 0.5, 0.25, 0.75;
}

1;
