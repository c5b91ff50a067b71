#!/usr/bin/perl
# The documents and the code say the same: what exists is documented, and nothing else is.

use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp ();
use JSON::PP;
use Test::More;
use RpTest;

my $repo = $RpTest::Build::REPO;

sub read_file {
    my ($name) = @_;
    open my $in, '<', "$repo/$name" or die "$name: $!\n";
    local $/;
    return <$in>;
}

sub sources { return map { s{^\Q$repo/}{}r } "$repo/mod_reqprof.c", glob "$repo/src/*/*.{c,h,def}" }

sub sorted { my %seen = map { $_ => 1 } @_; return [sort keys %seen] }

# The text below a heading of the second level.
sub section {
    my ($file, $heading) = @_;
    return read_file($file) =~ /^## \Q$heading\E\n(.*?)(?=^## |\z)/ms ? $1 : die "$file has no \"$heading\"\n";
}

# What stands in backticks in the first column of a section's tables.
sub first_column { return map { /^\| `([^`]+)` \|/ ? $1 : () } split /\n/, section(@_) }

# ---- directives

my ($table) = read_file('mod_reqprof.c') =~ /command_rec directives\[\] = \{(.*?)^\};/ms;
my @directives = $table =~ /AP_INIT_\w+\("(\w+)"/g;
my @documented = read_file('doc/directives.md') =~ /^## (\w+)$/mg;
cmp_ok scalar @directives, '>=', 4, 'mod_reqprof.c has a table of directives';
is_deeply \@documented, sorted_as(\@documented, @directives),
    'the directives of the code, and no other, are documented';

# The wanted list in the order of another one, so that a difference shows what is missing.
sub sorted_as {
    my ($order, @wanted) = @_;
    my %place = map { $order->[$_] => $_ } 0 .. $#$order;
    return [sort { ($place{$a} // 1e9) <=> ($place{$b} // 1e9) || $a cmp $b } @wanted];
}

my %default;
for my $name (@documented) {
    my %row = section('doc/directives.md', $name) =~ /^\| (Syntax|Default|Context|Since) \| (.+) \|$/mg;
    is_deeply [sort keys %row], [qw(Context Default Since Syntax)], "$name has syntax, default, context and version";
    like $row{Syntax} // '', qr/^`$name /, "$name: the syntax begins with its name";
    $default{$name} = $row{Default} && $row{Default} =~ /^`($name .+)`$/ ? $1 : "$name is without a default";
}
my ($good, $output) = RpTest->configtest(conf => join("\n", values %default) . "\n");
ok $good, 'httpd accepts every documented default' or diag $output;

# ---- tags of the error log

my @tags = map { read_file($_) =~ /"(RP\d{3}):/g } sources();
is_deeply [sort @tags], sorted(@tags), 'no tag is used for two messages';
is_deeply [read_file('doc/log-tags.md') =~ /^## (\S+)$/mg], sorted(@tags),
    'the tags of the code, and no other, are documented once and in order';
unlike join('', map { read_file($_) } sources()), qr/APLOGNO/, 'numbers that are httpd\'s own are not used';
for my $source (sources()) {
    my @untagged = grep { !/"RP\d{3}:/ } read_file($source) =~ /\bap_log_\w+\((.*?)\);/gs;
    ok !@untagged, "every message of $source has a tag" or diag @untagged if read_file($source) =~ /\bap_log_\w+\(/;
}

# ---- phases

my @phases = read_file('src/base/phases.def') =~ /^RP_PHASE\(\w+,\s*"(\w+)"/mg;
cmp_ok scalar @phases, '>=', 14, 'there are phases';
is_deeply [first_column('doc/metrics.md', 'Phases')], \@phases, 'the phases are documented in their order';

# ---- keys of the JSON, as the module prints them

# A histogram has the same keys wherever it stands: they are HIST's.
sub is_hist { my ($value) = @_; return ref $value eq 'HASH' && exists $value->{sum_ns} && exists $value->{p} }

sub walk {
    my ($value, $path, $found) = @_;
    if (is_hist($value) && $path ne 'HIST') {
        $found->{$path} = 'HIST';
        walk($value, 'HIST', $found);
    }
    elsif (ref $value eq 'HASH') {
        walk($value->{$_}, length $path ? "$path.$_" : $_, $found) for keys %$value;
    }
    elsif (ref $value eq 'ARRAY' && @$value) {
        walk($_, "$path\[]", $found) for @$value;
    }
    else {
        $found->{$path} //= 'value';
    }
    return $found;
}

my $srv = RpTest->start(modules => [qw(setenvif deflate)], allow_log => qr/AH01630: client denied/,
    conf => <<'END');
SetOutputFilter DEFLATE
<Location "/small.txt">
    Require all denied
</Location>
END
$srv->get($_) for '/page.html', '/small.txt', '/none';
my $json     = $srv->wait_for(sub { my $seen = $srv->json; @{ $seen->{timeline}{blocks} } && $seen }, 20) || $srv->json;
my $keys     = walk($json, '', {});
my %unit     = map { section('doc/metrics.md', $_) =~ /^\| `([^`]+)` \| (.*?) ?\|/mg } 'Histograms', 'JSON';
my @key_rows = map { first_column('doc/metrics.md', $_) } 'Histograms', 'JSON';

for my $list (qw(phases spans children flights epochs)) {
    cmp_ok scalar @{ $json->{$list} }, '>', 0, "the report has $list to look at";
}
ok +(grep { $_->{kind} eq 'log' } @{ $json->{spans} }), 'the report has a log to look at';
is_deeply sorted(@key_rows), sorted(keys %$keys), 'the keys that the module prints, and no other, are documented';
is scalar @key_rows, scalar @{ sorted(@key_rows) }, 'no key is documented twice';
is_deeply [grep { ($unit{$_} // '') eq 'HIST' } sort keys %unit], [grep { $keys->{$_} eq 'HIST' } sort keys %$keys],
    'what is a histogram is called one';
is_deeply [grep { !/\bns_per_|_ns(?:_|$)/ && !/^HIST\.p\./ } grep { ($unit{$_} // '') eq 'ns' } sort keys %unit], [],
    'every key in nanoseconds says so in its name';
is_deeply [map { $_->{phase} } @{ $json->{phases} }], \@phases, 'the report has every phase, in order';

my %kinds = map { $_ => 1 } section('doc/metrics.md', 'JSON') =~ /^\| `spans\[\]\.kind` \|.*?\| (.*) \|$/m
    ? $1 =~ /`(\w+)`/g : ();
is_deeply [grep { !$kinds{ $_->{kind} } } @{ $json->{spans} }], [], 'every kind of span in the report is documented';

# ---- parameters of the page

my %accepted = map { /^\| `(\w+)` \| (.+?) \|/ ? ($1 => $2) : () }
    split /\n/, (read_file('doc/metrics.md') =~ /\A(.*?)^## /ms)[0];
my $refusal = $srv->get('/reqprof-status?nonsense=1');
is $refusal->{status}, 400, 'an unknown parameter is refused';
my ($names) = $refusal->{content} =~ /accepted is (.*)/;
is_deeply sorted(keys %accepted), sorted(split /, | or /, $names), 'the parameters that are accepted are documented';
for my $name (qw(format window view)) {
    my ($values) = $srv->get("/reqprof-status?$name=nonsense")->{content} =~ /accepted is (.*)/;
    is_deeply sorted($accepted{$name} =~ /`(\w+)`/g), sorted(split /, | or /, $values),
        "the values of $name are documented";
}
$srv->done;

# ---- the segment

# The fields of every struct in the layout, as C has them: "struct offset bytes name".
sub layout_of_code {
    my $dir    = File::Temp->newdir;
    my $body   = '';
    my $layout = read_file('src/store/layout.h');
    while ($layout =~ /typedef struct \{(.*?)^\} (\w+);/gms) {
        my ($fields, $struct) = ($1, $2);
        $body .= "P($struct, $_)\n" for $fields =~ /^    \w+ (\w+)(?:\[\w+\])?;/mg;
    }
    open my $out, '>', "$dir/layout.c" or die "$dir/layout.c: $!\n";
    print $out <<"END";
#include <stdio.h>
#include "store/layout.h"
#define P(s, f) printf("%s %zu %zu %s\\n", #s, offsetof(s, f), sizeof(((s *)0)->f), #f);
int main(void)
{
$body
    return 0;
}
END
    close $out;
    my $log = `gcc -I'$repo/src' \$(apr-1-config --includes --cppflags) -o '$dir/layout' '$dir/layout.c' 2>&1`;
    die $log if $?;
    return split /\n/, `'$dir/layout'`;
}

my @drawn;
for my $struct (read_file('doc/shm-layout.md') =~ /^## (rp_\w+_t)$/mg) {
    push @drawn, map { "$struct $_->[0] $_->[1] $_->[2]" }
        map { /^ +(\d+) +(\d+)  (\w+)/ ? [$1, $2, $3] : () } split /\n/, section('doc/shm-layout.md', $struct);
}
my @layout = layout_of_code();
cmp_ok scalar @layout, '>', 60, 'the layout has fields';
is_deeply [sort @drawn], [sort @layout], 'the drawing of the segment has every field where the compiler puts it';

# ---- links

my @papers = map { s{^\Q$repo/}{}r } glob "$repo/{*,*/*}.md";
for my $paper (@papers) {
    my @broken = grep { !-e "$repo/" . dirname($paper) . "/$_" }
        map { s/#.*//r } grep { !/^(?:https?:|#)/ } read_file($paper) =~ /\]\(([^)\s]+)\)/g;
    is_deeply \@broken, [], "every link of $paper leads to a file";
}
my $readme = read_file('README.md');
is_deeply [grep { $readme !~ /\(\Q$_\E\)/ } grep { m{^doc/} } @papers], [], 'the README leads to every document';
like $readme, qr/^\s+make -f Makefile\.apxs demo$/m, 'the README has the command of the demo';
like $readme, qr/^\s+make -f Makefile\.apxs test$/m, 'the README has the command of the tests';
like read_file('.ci/run'), qr/^exec make -f Makefile\.apxs test$/m, 'and continuous integration runs just that';

done_testing;
