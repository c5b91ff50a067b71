# What an .htaccess file costs: reading it is a span and a line of its own, and <Directory> spares it.

use strict;
use warnings;
use Test::More;
use RpTest;
use RpTest::Build;

my $rules = `perl $RpTest::Build::REPO/conf/generate.pl lines --of=agents --shape=escaped --count=300 --env=robot`;
my $name  = "\x{3c}b\x{3e}";    # a directory that must be escaped in the page
my $srv   = RpTest->start(modules => ['setenvif'], override => 'All', status_vhost => 1,
    allow_log => qr/Invalid command|AH00526/, conf => <<'END',
ReqProfLineBudget 10
<Directory "@DOCROOT@/inside">
    AllowOverride None
    Include "@DOCROOT@/rules.conf"
</Directory>
END
    files => { 'rules.conf' => $rules, "$name/.htaccess" => $rules, 'wrong/.htaccess' => "NoSuchDirective\n",
        map { ("$_/index.html" => "$_\n") } $name, qw(inside wrong) });

my $delta = $srv->delta(sub {
    $srv->get('/%3Cb%3E/') for 1 .. 20;
    $srv->get('/inside/') for 1 .. 20;
});
my $json = $delta->{after};
my ($file) = grep { $_->{directive} eq '.htaccess' } @{ $json->{lines} };
is $file->{file}, $srv->docroot . "/$name/.htaccess", 'an .htaccess file has a row of its own';
is $file->{evaluated} % 20, 0, 'it is read once for each request and subrequest that needs it';
cmp_ok $file->{evaluated}, '>=', 20, 'so at least once for each request';
my ($span) = $srv->spans($json, kind => 'htaccess');
is $file->{sum_ns}, $span->{self}{sum_ns}, 'and costs what its span does';
is $span->{phase}, 'map', 'which is part of map';
is scalar(grep { $_->{directive} eq '.htaccess' } @{ $json->{lines} }), 1,
    'the same rules in <Directory> are not read again';
my @inside = grep { $_->{file} =~ /rules\.conf$/ } @{ $json->{lines} };
is scalar @inside, 300, 'they are lines that are replayed';
my $page = RpTest::Report::status($srv, 'view=config');
like $page, qr{AllowOverride None, are read once at start}, 'the page says what spares the reading';
like $page, qr{&lt;b&gt;/\.htaccess}, 'and shows the name of the file escaped';
unlike $page, qr{<b>/\.htaccess}, 'never as it is';

is $srv->get('/wrong/')->{status}, 500, 'a wrong file is refused as ever';
$srv->sums_ok(($srv->settle)[0], 'with a wrong file');
$srv->done;

done_testing;
