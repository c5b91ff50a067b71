#!/usr/bin/perl
# sums.pl BEFORE AFTER: what requests cost between two reports in JSON, a line each for the total, every phase and every
# span: COUNT SUM_NS NAME, with tabs between.
use strict;
use warnings;
use JSON::PP qw(decode_json);

my (%before, %after, @names);
for my $side ([ \%before, shift ], [ \%after, shift ]) {
    my ($sums, $file) = @$side;
    @names = ();
    for my $row (rows(report($file))) {
        my ($name, $hist) = @$row;
        push @names, $name if !$sums->{$name};
        $sums->{$name}[0] += $hist->{count};
        $sums->{$name}[1] += $hist->{sum_ns};
    }
}
for my $name (@names) {
    my $old = $before{$name} // [ 0, 0 ];
    print join("\t", $after{$name}[0] - $old->[0], $after{$name}[1] - $old->[1], $name), "\n";
}

sub report {
    my ($file) = @_;
    open my $in, '<:raw', $file or die "sums.pl: cannot read $file: $!\n";
    local $/;
    return decode_json(scalar <$in>);
}

sub rows {
    my ($report) = @_;
    return [ 'total', $report->{total} ],
        (map { [ "phase: $_->{phase}", $_->{self} ] } @{ $report->{phases} }),
        (map { [ 'span: ' . span_name($_), $_->{self} ] } @{ $report->{spans} });
}

# The port differs between runs and logs have paths; neither tells two spans of one server apart.
sub span_name {
    my ($span) = @_;
    my $name = join ' ', grep { defined && length } @$span{qw(phase kind hook owner)};
    return $name =~ s/[\t\n]/ /gr;
}
