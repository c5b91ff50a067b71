# Time spent for a subrequest or after an internal redirect belongs to the client's request, in the span that took it.

use strict;
use warnings;
use Test::More;
use RpTest;
use RpTest::Truth;

my $ms = 60;
my $conf = <<'END';
ErrorDocument 404 /gone.html
DirectoryIndex missing.html index.html
RewriteEngine On
RewriteRule ^/moved/(.*)$ /$1 [PT]
# With a configuration of its own, the part is checked again.
<Location "/part.html">
    Require all granted
</Location>
<Directory "@DOCROOT@/internal">
    RewriteEngine On
    RewriteRule ^first\.txt$ second.txt
</Directory>
END

my %files = ('list/index.html' => "<html><body>list</body></html>\n", 'gone.html' => "<html><body>gone</body></html>\n",
    'nested.shtml' => "<!--#include virtual=\"/ssi.shtml\" --><!--#include virtual=\"/part.html\" -->\n",
    'internal/second.txt' => "second\n");

sub ask {
    my ($srv, $path, $rule, $status) = @_;
    my $got = $srv->get($path, headers => { 'X-Ruler' => $rule })->{status};
    die "$path: $got\n" if $got != ($status || 200);
}

# what, path, URI prefix of the inner request, status, the places where it spends
my @cases = (
    ['SSI subrequest',         '/ssi.shtml',          '/part.html',  200,
        qw(translate_name map_to_storage access_checker type_checker fixups handler before)],
    ['SSI in SSI',             '/nested.shtml',       '/part.html',  200, qw(fixups handler before)],
    ['DirectoryIndex',         '/list/',              '/list/index', 200, qw(translate_name fixups handler before)],
    ['ErrorDocument',          '/none.html',          '/gone.html',  404,
        qw(translate_name fixups handler before insert_filter)],
    ['rewritten in directory', '/internal/first.txt', '/internal/second.txt', 200, qw(fixups handler before)],
    ['passed through',         '/moved/small.txt',    '/small.txt',  200, qw(fixups handler)],
);

my %phase = (translate_name => 'map', map_to_storage => 'map', access_checker => 'access', type_checker => 'fixup',
    fixups => 'fixup', handler => 'handler', insert_filter => 'handler');

sub span_at {
    my ($where) = @_;
    return { phase => 'filter', kind => 'filter', owner => 'RULER_BEFORE' } if $where eq 'before';
    return { phase => $phase{$where}, kind => 'hook', hook => $where, owner => 'mod_ruler' };
}

my %common = (status_vhost => 1, modules => [qw(rewrite ruler)], ssi => 1, files => \%files);

for my $mpm (qw(prefork event)) {
    my $srv = RpTest->start(mpm => $mpm, conf => $conf, %common);
    for my $case (@cases) {
        my ($what, $path, $uri, $status, @places) = @$case;
        for my $where (@places) {
            spent_in($srv, "$mpm, $what, $where", span_at($where), $ms,
                sub { ask($srv, $path, "where=$where;ms=$ms;uri=$uri", $status) });
        }
    }

    # The outer page and the part both wait in the same span: it is entered by one request, and has both times.
    my $rows = spent_in($srv, "$mpm, outer and inner", span_at('fixups'), 2 * $ms,
        sub { ask($srv, '/ssi.shtml', "where=fixups;ms=$ms;calls=0") });
    is((grep { $_->{hook} eq 'fixups' && $_->{owner} eq 'mod_ruler' } @$rows)[0]{count}, 1,
        "$mpm, outer and inner: one request entered the span");

    # A filter of the page waits while it hands on what the included part made.
    spent_in($srv, "$mpm, part through the page's filter", span_at('before'), 2 * $ms,
        sub { ask($srv, '/ssi.shtml', "where=before;ms=$ms;calls=0") });
    $srv->sums_ok($srv->json, $mpm);
    $srv->done;
}

# create_request is before the client's request, but inside of it for a subrequest.
{
    my $srv = RpTest->start(conf => "Ruler \"where=create_request;ms=$ms;calls=0\"\n", %common);
    spent_in($srv, 'create_request of a subrequest',
        { phase => 'read', kind => 'hook', hook => 'create_request', owner => 'mod_ruler' }, $ms,
        sub { ask($srv, '/ssi.shtml', 'where=none') });
    $srv->sums_ok($srv->json, 'create_request');
    $srv->done;
}

done_testing;
