package Bench::Server;

# A private httpd with Debian's default modules and one variant of the configuration, on a free port of 127.0.0.1.

use strict;
use warnings;
use File::Path qw(make_path);
use File::Temp ();
use IO::Socket::INET;
use RpTest::Build;
use RpTest::Conf;
use RpTest::Process;

# What Debian enables, without the MPM.
our @DEBIAN = qw(access_compat alias auth_basic authn_core authn_file authz_core authz_host authz_user autoindex deflate
    dir env filter mime negotiation reqtimeout setenvif status);

my $profiled = "LoadModule reqprof_module \"\@MODULE\@\"\n";

# mod_status alone switches ExtendedStatus on, so that every variant but one says Off.
our %VARIANTS = (
    'bare'           => "ExtendedStatus Off\n",
    'ExtendedStatus' => "ExtendedStatus On\n",
    'reqprof spans'  => "${profiled}ExtendedStatus Off\n",
    'reqprof phases' => "${profiled}ExtendedStatus Off\nReqProfDetail phases\n",
    'reqprof off'    => "${profiled}ExtendedStatus Off\nReqProf Off\n",
);

my %mpm_lines = (
    prefork => "StartServers 4\nMinSpareServers 4\nMaxSpareServers 8\nServerLimit 256\nMaxRequestWorkers 8\n",
    event   => "StartServers 2\nServerLimit 16\nThreadsPerChild 25\nMinSpareThreads 25\nMaxSpareThreads 75\n"
        . "MaxRequestWorkers 50\n",
);
$mpm_lines{worker} = $mpm_lines{event};

my @running;

# start(variant => NAME, mpm => 'event', mpm_conf => TEXT, conf => TEXT, modules => [more], before => [command prefix],
# httpd => PATH of another program, port => N, single => 1 for httpd -X); conf has @DIR@, @PORT@ and @DOCROOT@ filled in. Dies when httpd does not start.
sub start {
    my ($class, %arg) = @_;
    my $temp = File::Temp->newdir('rpbench-XXXXXX', TMPDIR => 1, CLEANUP => !$ENV{RP_KEEP});
    my $self = bless { temp => $temp, dir => "$temp", docroot => "$temp/htdocs", owner => $$,
        mpm => $arg{mpm} || 'event' }, $class;
    make_path("$self->{dir}/run", $self->{docroot});
    $self->{port} = $arg{port} // (RpTest::Conf::free_ports(1))[0];
    $self->write_documents;
    RpTest::Conf::write_file("$self->{dir}/httpd.conf", $self->configuration(%arg));
    chmod 0755, $self->{dir};
    RpTest::Conf::give_away($self->{dir});
    push @running, $self;
    $self->launch(%arg);
    return $self;
}

sub generate {
    my @command = ('perl', "$RpTest::Build::REPO/conf/generate.pl", @_);
    open my $pipe, '-|', @command or die "@command: $!\n";
    my $text = do { local $/; <$pipe> };
    close $pipe or die "@command failed\n";
    return $text;
}

my %documents;

sub write_documents {
    my ($self) = @_;
    %documents = ('small.txt' => generate('small'), 'page.html' => generate('page')) if !%documents;
    RpTest::Conf::write_file("$self->{docroot}/$_", $documents{$_}) for keys %documents;
}

sub configuration {
    my ($self, %arg) = @_;
    my $variant = $VARIANTS{ $arg{variant} } // die "no variant \"$arg{variant}\"\n";
    my %value = (DIR => $self->{dir}, PORT => $self->{port}, DOCROOT => $self->{docroot},
        MODULE => RpTest::Build::module());
    my $modules = join '', map { load($_) } "mpm_$self->{mpm}", @DEBIAN, @{ $arg{modules} || [] };
    my $text = common_lines() . mpm_text($mpm_lines{ $self->{mpm} }, $arg{mpm_conf} // '') . $variant
        . ($arg{conf} // '');
    return $modules . ($text =~ s/\@([A-Z]+)\@/$value{$1} \/\/ "\@$1\@"/ger);
}

# Each directive once: MPM directives are checked together when the last has been read, but ServerLimit may stand once.
sub mpm_text {
    my %value = map { /^(\w+) (.*)$/ ? ($1 => $2) : () } map { split /\n/ } @_;
    return join '', map { "$_ $value{$_}\n" } sort keys %value;
}

# A module by name, or NAME=PATH for one of our own.
sub load {
    my ($name, $path) = split /=/, $_[0], 2;
    return '' if RpTest::Build::static_modules()->{$name};
    return sprintf "LoadModule %s_module \"%s\"\n", $name, $path // RpTest::Build::libexecdir() . "/mod_$name.so";
}

sub common_lines {
    return <<'END';
ServerRoot "@DIR@"
DefaultRuntimeDir "@DIR@/run"
PidFile "@DIR@/httpd.pid"
ErrorLog "@DIR@/error.log"
LogLevel notice
ServerName localhost
Listen 127.0.0.1:@PORT@
TypesConfig /etc/mime.types
DocumentRoot "@DOCROOT@"
LogFormat "%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"" combined
CustomLog "@DIR@/access.log" combined
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
AddOutputFilterByType DEFLATE text/html
<Directory "/">
    Options FollowSymLinks
    AllowOverride None
    Require all granted
</Directory>
<Location "/server-status">
    SetHandler server-status
</Location>
<Location "/reqprof-status">
    SetHandler reqprof-status
</Location>
END
}

sub launch {
    my ($self, %arg) = @_;
    my @command = (map({ s/\@DIR\@/$self->{dir}/gr } @{ $arg{before} || [] }), $arg{httpd} || RpTest::Build::httpd(),
        '-f', "$self->{dir}/httpd.conf", '-d', $self->{dir}, $arg{single} ? '-X' : '-DFOREGROUND');
    $self->{pid} = RpTest::Process::spawn(command => \@command, console => "$self->{dir}/console.log",
        env => { LC_ALL => 'C' });
    my $up = sub { $self->connects && ($arg{single} || $self->said =~ /resuming normal operations/) };
    my $ended;
    RpTest::Process::wait_for(sub { $up->() || ($ended = RpTest::Process::ended($self->{pid})) }, $arg{before} ? 120 : 30);
    return if !$ended && $up->();
    die "httpd ($arg{variant}) did not start:\n" . $self->said;
}

sub connects {
    my ($self) = @_;
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 1);
}

sub said {
    my ($self) = @_;
    my $text = '';
    for my $name (qw(console.log error.log)) {
        open my $file, '<', "$self->{dir}/$name" or next;
        $text .= do { local $/; <$file> } // '';
    }
    return $text;
}

sub pid  { return $_[0]{pid} }
sub port { return $_[0]{port} }
sub dir  { return $_[0]{dir} }

sub url {
    my ($self, $path) = @_;
    return "http://127.0.0.1:$self->{port}$path";
}

sub children { return RpTest::Process::children_of($_[0]{pid}) }

sub stop {
    my ($self) = @_;
    return if $self->{stopped}++ || $$ != $self->{owner} || !$self->{pid};
    RpTest::Process::stop($self->{pid});
    @running = grep { $_ != $self } @running;
}

for my $signal (qw(INT TERM HUP)) {
    $SIG{$signal} = sub { exit 130 };
}

END {
    my $status = $?;
    $_->stop for @running;
    $? = $status;
}

1;
