package Bench::Part::Instructions;

# Instructions of a request for a small file on a keep-alive connection, every MPM.

use strict;
use warnings;
use Bench::Callgrind;
use Bench::Part;
use Bench::Table;

sub rows {
    my (%arg) = @_;
    return map { of_mpm($_, %arg) } $arg{quick} ? ('prefork') : qw(prefork worker event);
}

sub of_mpm {
    my ($mpm, %arg) = @_;
    my $requests = $arg{quick} ? 300 : 1000;
    my $counted  = Bench::Callgrind::count_all(mpm => $mpm, requests => $requests,
        variants => [ Bench::Callgrind::variants() ]);
    my %more = map { $_ => $counted->{$_}{total} - $counted->{bare}{total} } keys %$counted;
    my $text = sub { Bench::Table::difference($more{ $_[0] }) };
    return (
        Bench::Part::fact("$mpm: instructions of a bare request", Bench::Table::count($counted->{bare}{total})),
        Bench::Part::fact("$mpm: ExtendedStatus On adds", $text->('ExtendedStatus')),
        Bench::Part::at_most("$mpm: all spans add", $more{'reqprof spans'}, 1500, $text->('reqprof spans')),
        Bench::Part::at_most("$mpm: all spans, to what ExtendedStatus adds",
            $more{'reqprof spans'} / $more{ExtendedStatus}, 1),
        Bench::Part::fact("$mpm: ReqProfDetail phases adds", $text->('reqprof phases')),
        Bench::Part::at_most("$mpm: ReqProf Off adds", $more{'reqprof off'}, 200, $text->('reqprof off')),
    );
}

1;
