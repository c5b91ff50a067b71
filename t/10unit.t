# The tests in C: each program of t/unit is a subtest, and each of its tests one of that.

use strict;
use warnings;
use File::Basename qw(basename);
use Test::More;
use RpTest::Build;

my $build = $ENV{RP_BUILD} || "$RpTest::Build::REPO/build/release";
my @sources = sort glob "$RpTest::Build::REPO/t/unit/test_*.c";
plan tests => scalar @sources;

# Runs a program; returns its lines of TAP and all that it printed.
sub run_program {
    my ($path) = @_;
    local $ENV{CMOCKA_MESSAGE_OUTPUT} = 'TAP';
    local $ENV{ASAN_OPTIONS}          = 'detect_leaks=0';
    open my $pipe, '-|', "'$path' 2>&1" or die "$path: $!\n";
    my @lines = <$pipe>;
    close $pipe;
    return ($?, @lines);
}

for my $source (@sources) {
    my $name = basename($source, '.c');
    subtest $name => sub {
        my $path = "$build/unit/$name";
        return fail "$path is missing: make -f Makefile.apxs unit" if !-x $path;
        my ($status, @lines) = run_program($path);
        my ($planned) = map { /^1\.\.(\d+)/ ? $1 : () } @lines;
        my @results = map { /^(not )?ok \d+ - (.+)/ ? [!$1, $2] : () } @lines;
        ok $_->[0], $_->[1] =~ tr/_/ /r for @results;
        is scalar(@results), $planned, "$name ran all the tests it has";
        is $status, 0, "$name ends well" or diag @lines;
    };
}
