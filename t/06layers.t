#!/usr/bin/perl
# Who may know whom, what the module exports, and how its files look.

use strict;
use warnings;
use File::Find ();
use Test::More;
use RpTest::Build;

my $repo = $RpTest::Build::REPO;

sub read_file {
    my ($name) = @_;
    open my $in, '<', "$repo/$name" or die "$name: $!\n";
    local $/;
    return <$in>;
}

# Files below folders, by the end of their names.
sub files {
    my ($end, @folders) = @_;
    my @found;
    File::Find::find({ no_chdir => 1, wanted => sub { push @found, s{^\Q$repo/}{}r if -f && /$end/ } },
        map { "$repo/$_" } @folders);
    return sort @found;
}

# ---- arrows: report, capture -> store -> base

my $code = qr/\.(?:c|h|def)$/;
my %may_use = (
    base    => qr{^base/},
    store   => qr{^(?:base|store)/},
    capture => qr{^(?:base|store|capture)/},
    report  => qr{^(?:(?:base|store|report)/|mod_reqprof\.h$)},
);
is_deeply [sort map { s{.*/}{}r } grep { -d } glob "$repo/src/*"], [sort keys %may_use],
    'src has these folders and no other';
for my $room (sort keys %may_use) {
    my @wrong;
    for my $file (files($code, "src/$room")) {
        push @wrong, map { "$file: $_" } grep { !/$may_use{$room}/ } read_file($file) =~ /^\s*#\s*include "([^"]+)"/mg;
    }
    is_deeply \@wrong, [], "src/$room includes only what it may know";
}

my $httpd_headers = RpTest::Build::apxs('INCLUDEDIR');
ok -e "$httpd_headers/httpd.h", 'httpd\'s headers are where apxs says';
for my $room (qw(base store)) {
    my @wrong;
    for my $file (files($code, "src/$room")) {
        push @wrong, map { "$file: $_" } grep { -e "$httpd_headers/$_" }
            read_file($file) =~ /^\s*#\s*include <([^>]+)>/mg;
    }
    is_deeply \@wrong, [], "src/$room knows nothing of httpd";
}

my @of_main = grep { !/^mod_reqprof\.h$/ } read_file('mod_reqprof.c') =~ /^#include "([^"]+)"/mg;
is_deeply [grep { m{^store/} } @of_main], ['store/layout.h'],
    'mod_reqprof.c knows limits of the store, and not how it works';
is_deeply [grep { m{^report/} } @of_main], ['report/handler.h'], 'of the report mod_reqprof.c knows the handler';
my @functions = read_file('mod_reqprof.c') =~ /^(\w[^\n;=]*\([^;=]*\))\n\{/mg;
cmp_ok scalar @functions, '>', 5, 'mod_reqprof.c has functions to look at';
is_deeply [grep { !/^static / } @functions], [], 'all of them are its own';

# ---- what others see

my $module  = RpTest::Build::module();
my @exports = map { /^\S+ [A-TV-Z] (\S+)$/ ? $1 : () } split /\n/, `nm -D --defined-only '$module' 2>&1`;
is_deeply \@exports, ['reqprof_module'], 'the module exports one symbol' or diag "$module: @exports";

# ---- promises of the source text

my @sources = ('mod_reqprof.c', 'mod_reqprof.h', files($code, 'src'));

# The text without comments and the contents of strings.
sub bare {
    my ($file) = @_;
    return read_file($file) =~ s{/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"}{}gsr;
}

is_deeply [grep { bare($_) =~ /\b(?:assert|abort|_?exit|ap_assert|AP_DEBUG_ASSERT)\s*\(/ } @sources], [],
    'nothing ends the server';
my $locks = qr/\b(?:apr_(?:thread|global|proc)_mutex|apr_thread_rwlock|pthread_(?:mutex|rwlock|spin))_/;
is_deeply [grep { bare($_) =~ $locks } @sources], [], 'no lock is taken that a dead child could keep';
is_deeply [grep { bare($_) =~ /\b(?:malloc|calloc|realloc|strdup)\s*\(/ } @sources], [],
    'all memory comes from pools and the segment';

my @pointers = map { /^(    [^\n]*\*[^\n]*;)/mg } map { /typedef struct \{(.*?)^\}/gms } bare('src/store/layout.h');
is_deeply \@pointers, [], 'there is no pointer in shared memory';

for my $header (grep { /\.h$/ } @sources) {
    my ($name) = $header =~ m{([^/]+)$};
    like read_file($header), qr{\A/\*\*\n \* \@file \Q$name\E\n \* \@brief \S}, "$header says what it is for";
}
is_deeply [grep { m{/rp_[^/]*$} } @sources], [], 'files are named by topic, without a prefix';

# ---- how files look

my $text = qr/\.(?:c|h|def|inc|pl|pm|t|sh|conf|in|map|css)$/;
my @texts = ('Makefile.apxs', '.ci/run', 'mod_reqprof.c', 'mod_reqprof.h', files($text, qw(src conf t assets)));
cmp_ok scalar @texts, '>', 80, 'there are files to look at';
is_deeply [over(120)], [], 'no line is longer than 120 columns';
is_deeply [grep { read_file($_) =~ /[ \t]$/m } @texts], [], 'no line ends with blanks';
is_deeply [grep { read_file($_) !~ /[^\n]\n\z/ } @texts], [], 'every file ends with one newline';
is_deeply [grep { $_ ne 'Makefile.apxs' && read_file($_) =~ /\t/ } @texts], [],
    'lines are indented by blanks';

sub over {
    my ($columns) = @_;
    my @long;
    for my $file (@texts) {
        my $number = 0;
        for my $line (split /\n/, read_file($file)) {
            $number++;
            utf8::decode($line); # columns, not bytes
            push @long, "$file:$number" if length $line > $columns;
        }
    }
    return @long;
}

done_testing;
