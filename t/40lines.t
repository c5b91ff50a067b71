# The line table: which directive stands where, where it takes effect, what is measured of it, and what nobody may see.

use strict;
use warnings;
use Test::More;
use RpTest;

my @modules = qw(setenvif access_compat authz_host authn_core auth_basic authz_user filter deflate env headers ruler);

my $conf = <<'END';
AddOutputFilterByType DEFLATE text/html
SetEnv DB_PASSWORD hunter2
RequestHeader set Authorization "Basic hunter2"
Header set X-Link "http://me:hunter2@backend.example/"
SetEnvIf Request_URI "/token" asks_token
<VirtualHost *:@PORT@>
    ServerName one.test
    Include "@DOCROOT@/shared.conf"
    <Directory "@DOCROOT@/asked">
        <RequireAll>
            Require not ip 192.0.2.1
            Require ruler ms=30
        </RequireAll>
    </Directory>
    <Directory "@DOCROOT@/secret">
        AuthType Basic
        AuthName "secret"
        AuthBasicProvider ruler
        Require valid-user
    </Directory>
    CustomLog "@DIR@/one.log" "%h"
</VirtualHost>
<VirtualHost *:@PORT@>
    ServerName two.test
    Include "@DOCROOT@/shared.conf"
    CustomLog "@DIR@/two.log" "%h" env=wanted
</VirtualHost>
<VirtualHost *:@PORT@>
    ServerName silent.test
    SetEnvIf User-Agent "never-asked" never
</VirtualHost>
END

my $shared = <<'END';
SetEnvIf User-Agent "wanted" wanted

SetEnvIf User-Agent "other" other=%1
END

my $srv = RpTest->start(modules => \@modules, conf => $conf, status_vhost => 1, access_log => 0,
    files => { 'shared.conf' => $shared, map { ("$_/index.html" => "$_\n") } qw(asked secret) });

$srv->get('/small.txt', vhost => 'one.test')                                     for 1 .. 6;
$srv->get('/asked/',    vhost => 'one.test')                                     for 1 .. 3;
$srv->get('/secret/',   vhost => 'one.test', headers => { Authorization => 'Basic dTpzZWNyZXQ=' }) for 1 .. 2;
$srv->get('/small.txt', vhost => 'two.test')                                     for 1 .. 4;
$srv->get('/small.txt', vhost => 'two.test', headers => { 'User-Agent' => 'wanted' }) for 1 .. 2;
my ($json) = $srv->settle;
my $main = $srv->conf_file;

sub lines {
    my (%wanted) = @_;
    return grep { my $row = $_; !grep { $row->{$_} !~ $wanted{$_} } keys %wanted } @{ $json->{lines} };
}

sub one { my @found = lines(@_); is scalar @found, 1, "@_: one line"; return $found[0] // {} }

# Places.
my $row = one(directive => qr/^SetEnvIf$/, args => qr/"wanted"/);
is $row->{file}, $srv->docroot . '/shared.conf', 'an included line has the name of its own file';
is $row->{line}, 1, 'and its number there';
is $row->{scope}, 'one.test, two.test', 'included by two virtual hosts it is one line with two scopes';
is $row->{scopes}, 2, 'which are counted';
is one(args => qr/"other"/)->{line}, 3, 'empty lines count';
is one(args => qr/asks_token/)->{scope}, 'server', 'a line outside of sections takes effect in the server';
like one(args => qr/^not ip/)->{scope}, qr/^one\.test <Directory .*asked.* <RequireAll>$/,
    'sections are named from the outside in';

# Live.
$row = one(directive => qr/^Require$/, args => qr/^ruler/);
is "$row->{source} $row->{evaluated}", 'live 3', 'a Require line is measured live, each time it is asked';
cmp_ok $row->{sum_ns}, '>=', 90_000_000, 'it owns the sleep of its provider';
is one(args => qr/^not ip/)->{evaluated}, 3, 'a Require not line is measured, too';
is one(directive => qr/^AuthBasicProvider$/)->{evaluated}, 2, 'a password provider belongs to the line that chose it';
is one(directive => qr/^Add/)->{source}, 'live', 'the only line that names a filter owns its time';
$row = one(directive => qr/^CustomLog$/, args => qr/one\.log/);
is "$row->{evaluated} $row->{matched}", '11 11', 'a log is evaluated and written for each request of its host';
$row = one(directive => qr/^CustomLog$/, args => qr/two\.log/);
is "$row->{evaluated} $row->{matched}", '6 2', 'a conditional log is evaluated for all, written for those that match';

# Never asked.
$row = one(args => qr/never-asked/);
is "$row->{source} $row->{evaluated} $row->{sum_ns}", 'replay 0 0',
    'a line of a virtual host that is never asked is not evaluated';

# Secrets.
for my $query ('format=json', 'format=text', 'view=config', 'format=folded') {
    unlike RpTest::Report::status($srv, $query), qr/hunter2/, "?$query shows no argument that holds a secret";
}

$srv->done;

# Without the modules that own them, their directives are as unknown as ever.
for my $line ('SetEnvIf User-Agent x y', 'BrowserMatch x y', "<Directory />\nDeny from all\n</Directory>") {
    my ($good, $output) = RpTest->configtest(conf => "$line\n");
    ok !$good, "without its module the server does not start: $line";
    like $output, qr/Invalid command '(SetEnvIf|BrowserMatch|Deny)', perhaps misspelled/i, 'and says why as ever';
}

# ReqProfLineBudget and ReqProfDetail say what they accept.
for my $line ('ReqProfLineBudget lots', 'ReqProfLineBudget 11', 'ReqProfLineBudget -1', 'ReqProfDetail words') {
    my ($good, $output) = RpTest->configtest(conf => "$line\n");
    ok !$good, "$line stops the start";
    like $output, qr/accepted is/, 'with a sentence that says what is accepted';
}

done_testing;
