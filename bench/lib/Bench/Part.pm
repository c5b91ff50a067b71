package Bench::Part;

# What the parts of the bench share. A part is a module Bench::Part::NAME with a sub rows(quick => BOOL) that returns
# rows: [what, value, budget, verdict]. Every value is a difference or a ratio of servers that ran side by side.

use strict;
use warnings;
use Bench::Table;

sub at_most {
    my ($what, $value, $budget, $text) = @_;
    my $over = $value - $budget;
    my $verdict = $over <= 0 ? 'met' : sprintf 'not met, by %.4g', $over;
    return [ $what, $text // sprintf('%.4g', $value), "at most $budget", $verdict ];
}

sub at_least {
    my ($what, $value, $budget, $text) = @_;
    my $short = $budget - $value;
    my $verdict = $short <= 0 ? 'met' : sprintf 'not met, by %.4g', $short;
    return [ $what, $text // sprintf('%.4g', $value), "at least $budget", $verdict ];
}

# A number that no budget stands for.
sub fact {
    my ($what, $text) = @_;
    return [ $what, $text, '', '' ];
}

sub skipped {
    my ($what, $why) = @_;
    return [ $what, "skipped: $why", '', '' ];
}

1;
