package RpTest::Build;

# Where things are, and the test modules' build.

use strict;
use warnings;
use Cwd qw(abs_path);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use File::Path qw(make_path);

our $REPO = abs_path(dirname(__FILE__) . '/../../..');

my %apxs;

sub apxs {
    my ($name) = @_;
    my $apxs = $ENV{APXS} || 'apxs';
    $apxs{$name} //= do { my $value = `$apxs -q $name`; chomp $value; $value };
    return $apxs{$name};
}

sub httpd      { return $ENV{RP_HTTPD}  || apxs('SBINDIR') . '/' . apxs('PROGNAME') }
sub libexecdir { return apxs('LIBEXECDIR') }
sub module     { return $ENV{RP_MODULE} || "$REPO/mod_reqprof.so" }

# The modules that are compiled into httpd, by LoadModule's short name: {so => 1, unixd => 1, ...}
my $static;

sub static_modules {
    $static ||= { map { /^\s+(?:mod_|http_)?(\w+)\.c/ ? ($1 => 1) : () } split /\n/, `@{[httpd()]} -l` };
    return $static;
}

# Builds t/modules/mod_NAME.c when needed and returns the path of the .so. Tests that run at the same time wait.
my %built;

sub test_module {
    my ($name) = @_;
    my $out = $ENV{RP_TEST_BUILD} || "$REPO/build/t";
    return "$out/mod_$name.so" if $built{$name}++;
    make_path($out);
    open my $lock, '>', "$out/.lock" or die "$out/.lock: $!\n";
    flock $lock, LOCK_EX;
    my $log = `make -s -C '$REPO/t/modules' OUT='$out' 2>&1`;
    die "building t/modules failed:\n$log" if $?;
    return "$out/mod_$name.so";
}

sub is_test_module { return -e "$REPO/t/modules/mod_$_[0].c" }

1;
