package Bench::Build;

# Compiles the small C parts of the bench below build/bench.

use strict;
use warnings;
use File::Path qw(make_path);
use RpTest::Build;

our $OUT = "$RpTest::Build::REPO/build/bench";

# A module from bench/SOURCE.c, as Bench::Server's modules want it: NAME=PATH.
sub module {
    my ($source, $name, @flags) = @_;
    my $path    = "$OUT/mod_$name.so";
    my $include = RpTest::Build::apxs('INCLUDEDIR');
    compile('-shared', '-fPIC', "-I$include", split(' ', `apr-1-config --includes --cppflags`), @flags, '-o', $path,
        "$RpTest::Build::REPO/bench/$source.c");
    return "$name=$path";
}

sub compile {
    make_path($OUT);
    my @command = ($ENV{CC} || 'gcc', qw(-std=gnu11 -O2 -g -Wall -Wextra -Wno-missing-field-initializers), @_);
    system(@command) == 0 or die "@command failed\n";
}

1;
