package Bench::Table;

# Plain text tables: the first column to the left, all others to the right.

use strict;
use warnings;

sub text {
    my ($heads, @rows) = @_;
    my @width = map { my $i = $_; (sort { $b <=> $a } map { length($_->[$i] // '') } $heads, @rows)[0] } 0 .. $#$heads;
    return join '', map { line($_, @width) } $heads, [ map { '-' x $_ } @width ], @rows;
}

sub line {
    my ($row, @width) = @_;
    my $text = join '  ', map { sprintf $_ ? "%$width[$_]s" : "%-$width[$_]s", $row->[$_] // '' } 0 .. $#width;
    return $text =~ s/\s+\z//r . "\n";
}

# 12345 becomes 12,345.
sub count {
    my ($number) = @_;
    my $text = sprintf '%.0f', $number;
    1 while $text =~ s/^(-?\d+)(\d{3})/$1,$2/;
    return $text;
}

sub difference {
    my ($number) = @_;
    my $text = count($number);
    return $text =~ /^-/ ? $text : "+$text";
}

1;
