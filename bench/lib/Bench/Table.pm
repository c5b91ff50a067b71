package Bench::Table;

# Plain text tables.

use strict;
use warnings;

# The first column to the left, all others to the right.
sub text { return table('', @_) }

# All columns to the left.
sub left_text { return table('-', @_) }

sub table {
    my ($align, $heads, @rows) = @_;
    my @width = map { my $i = $_; (sort { $b <=> $a } map { length($_->[$i] // '') } $heads, @rows)[0] } 0 .. $#$heads;
    return join '', map { line($align, $_, @width) } $heads, [ map { '-' x $_ } @width ], @rows;
}

sub line {
    my ($align, $row, @width) = @_;
    my $text = join '  ', map { sprintf $_ ? "%$align$width[$_]s" : "%-$width[$_]s", $row->[$_] // '' } 0 .. $#width;
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
