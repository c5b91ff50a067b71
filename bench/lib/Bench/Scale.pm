package Bench::Scale;

# Bigger configurations: more links, rules and virtual hosts.

use strict;
use warnings;
use Bench::Build;
use Bench::Server;

# N modules of eight links each.
sub link_modules {
    my ($count) = @_;
    return map { Bench::Build::module('links', $_, "-DLINKS=$_") } map { sprintf 'links%02d', $_ } 1 .. $count;
}

# SetEnvIf lines as blocklists have them.
sub rules {
    my ($count) = @_;
    return $count ? Bench::Server::generate('lines', "--count=$count", qw(--of=referers --shape=escaped --env=deny_ref)) : '';
}

# The first stands for all names that no other has, so that requests for localhost stay there.
sub vhosts {
    my ($count) = @_;
    return join '', map { <<"END" } 1 .. $count;
<VirtualHost 127.0.0.1:\@PORT\@>
    ServerName host$_.test
    CustomLog "\@DIR\@/access.log" combined
</VirtualHost>
END
}

1;
