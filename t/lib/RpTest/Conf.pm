package RpTest::Conf;

# Writes a server's directory: httpd.conf, document root, CGI, SSI page, certificate.

use strict;
use warnings;
use File::Basename qw(dirname);
use File::Find ();
use File::Path qw(make_path);
use IO::Socket::INET;
use RpTest::Build;
use RpTest::Log;
use RpTest::Process;

my @base_modules = qw(authz_core dir mime alias);

# Few processes, none of which comes or goes by itself while a test runs.
my %mpm_defaults = (
    prefork => { StartServers => 2, MinSpareServers => 1, MaxSpareServers => 8, ServerLimit => 8,
                 MaxRequestWorkers => 8 },
    worker  => { ServerLimit => 2, StartServers => 2, ThreadsPerChild => 8, ThreadLimit => 64, MinSpareThreads => 1,
                 MaxSpareThreads => 64, MaxRequestWorkers => 16 },
);
$mpm_defaults{event} = $mpm_defaults{worker};

my $cgi = <<'END';
#!/bin/sh
# Answers with its environment's REQUEST_METHOD and QUERY_STRING; "sleep=N" sleeps N seconds first.
case "$QUERY_STRING" in sleep=*) sleep "${QUERY_STRING#sleep=}" ;; esac
printf 'Content-Type: text/plain\r\n\r\n'
printf 'method=%s query=%s\n' "$REQUEST_METHOD" "$QUERY_STRING"
END

my $ssi = <<'END';
<html><body>before <!--#include virtual="/part.html" --> after</body></html>
END

sub write_file {
    my ($path, $content) = @_;
    make_path(dirname($path));
    open my $file, '>:raw', $path or die "$path: $!\n";
    print {$file} $content;
    close $file or die "$path: $!\n";
    chmod 0755, $path if $content =~ /^#!/;
}

# Ports that were free a moment ago; all are held until all are known.
sub free_ports {
    my ($count) = @_;
    my @sockets = map {
        IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1, Proto => 'tcp', ReuseAddr => 1)
            // die "no free port: $!\n"
    } 1 .. $count;
    return map { $_->sockport } @sockets;
}

sub default_files {
    my $line = "The quick brown fox jumps over the lazy dog, once more and once again.\n";
    return (
        'index.html' => "<html><body>It serves.</body></html>\n",
        'part.html'  => "<p>part</p>\n",
        'page.html'  => "<html><body>\n" . $line x 600 . "</body></html>\n",
        'small.txt'  => "small\n",
        'big.txt'    => $line x 30_000,
    );
}

sub write_files {
    my ($self, $files) = @_;
    my %files = (default_files(), %{ $files || {} });
    write_file("$self->{docroot}/$_", $files{$_}) for keys %files;
    write_file("$self->{docroot}/ssi.shtml", $ssi);
    write_file("$self->{dir}/cgi-bin/echo.cgi", $cgi);
}

# A self-signed certificate for localhost: $dir/tls.crt and $dir/tls.key.
sub make_certificate {
    my ($dir) = @_;
    my $log = `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost \\
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE \\
        -keyout '$dir/tls.key' -out '$dir/tls.crt' 2>&1`;
    die "openssl req failed:\n$log" if $?;
}

# Everything belongs to the user the server runs as.
sub give_away {
    my ($dir) = @_;
    my ($uid, $gid) = RpTest::Process::server_user() or return;
    File::Find::find({ no_chdir => 1, wanted => sub { chown $uid, $gid, $_ or die "chown $_: $!\n" } }, $dir);
}

sub load_module {
    my ($name) = @_;
    return '' if RpTest::Build::static_modules()->{$name};
    my $path = RpTest::Build::is_test_module($name) ? RpTest::Build::test_module($name)
        : RpTest::Build::libexecdir() . "/mod_$name.so";
    return "LoadModule ${name}_module \"$path\"\n";
}

# The modules in loading order; each once.
sub module_names {
    my ($arg) = @_;
    my @names = ("mpm_$arg->{mpm}", @base_modules, @{ $arg->{modules} || [] });
    push @names, $arg->{mpm} eq 'prefork' ? 'cgi' : 'cgid' if $arg->{cgi};
    push @names, 'include' if $arg->{ssi};
    push @names, 'socache_shmcb', 'ssl' if $arg->{tls};
    push @names, 'http2'   if $arg->{http2};
    my %seen;
    return grep { !$seen{$_}++ } @names;
}

sub load_modules {
    my ($arg) = @_;
    my $lines = join '', map { load_module($_) } module_names($arg);
    return $lines if !$arg->{profiler};
    my $path = RpTest::Build::module();
    die "$path is missing: run make first\n" if !-e $path;
    my $ours = "LoadModule reqprof_module \"$path\"\n";
    return $arg->{profiler} eq 'first' ? $ours . $lines : $lines . $ours;
}

sub mpm_lines {
    my ($arg) = @_;
    my %conf = (%{ $mpm_defaults{ $arg->{mpm} } || die "no mpm \"$arg->{mpm}\"\n" }, %{ $arg->{mpm_conf} || {} });
    return join '', map { "$_ $conf{$_}\n" } sort grep { defined $conf{$_} } keys %conf;
}

my $status_location = <<'END';
<Location "/reqprof-status">
    SetHandler reqprof-status
</Location>
END

sub status_lines {
    my ($self, $arg) = @_;
    return '' if !$arg->{profiler};
    return $status_location if !$arg->{status_vhost};
    return "Listen 127.0.0.1:$self->{status_port}\n<VirtualHost 127.0.0.1:$self->{status_port}>\n"
        . "ServerName status.test\nReqProf Off\n${status_location}</VirtualHost>\n";
}

sub feature_lines {
    my ($self, $arg) = @_;
    my $lines = '';
    $lines .= "ScriptAlias /cgi-bin/ \"$self->{dir}/cgi-bin/\"\n" if $arg->{cgi};
    $lines .= "ScriptSock \"$self->{dir}/run/cgisock\"\n" if $arg->{cgi} && $arg->{mpm} ne 'prefork';
    $lines .= "AddType text/html .shtml\nAddOutputFilter INCLUDES .shtml\n" if $arg->{ssi};
    $lines .= 'Protocols ' . ($arg->{tls} ? 'h2 h2c' : 'h2c') . " http/1.1\n" if $arg->{http2};
    $lines .= "Listen 127.0.0.1:$_\n" for @{ $self->{more_ports} };
    return $lines . ($arg->{tls} ? tls_lines($self) : '');
}

sub tls_lines {
    my ($self) = @_;
    return <<"END";
SSLSessionCache "shmcb:$self->{dir}/run/tls(512000)"
Listen 127.0.0.1:$self->{tls_port}
<VirtualHost 127.0.0.1:$self->{tls_port}>
    ServerName localhost
    SSLEngine on
    SSLCertificateFile "$self->{dir}/tls.crt"
    SSLCertificateKeyFile "$self->{dir}/tls.key"
</VirtualHost>
END
}

# @PORT@, @PORT1@ ..., @TLS_PORT@, @DIR@, @DOCROOT@, @REPO@ and @LIBEXEC@ in the test's own configuration.
sub fill_in {
    my ($self, $text) = @_;
    my %value = (PORT => $self->{port}, TLS_PORT => $self->{tls_port}, DIR => $self->{dir},
        DOCROOT => $self->{docroot}, REPO => $RpTest::Build::REPO, LIBEXEC => RpTest::Build::libexecdir());
    $value{"PORT$_"} = $self->{more_ports}[$_ - 1] for 1 .. @{ $self->{more_ports} };
    return $text =~ s/\@([A-Z_]+\d*)\@/$value{$1} \/\/ "\@$1\@"/ger;
}

sub text {
    my ($self, $arg) = @_;
    my $types = -e '/etc/mime.types' ? '/etc/mime.types' : '/dev/null';
    my $level = $arg->{log_level} || 'notice';
    my $log   = ($arg->{access_log} // 1)
        ? "LogFormat \"$RpTest::Log::ACCESS_FORMAT\" rptest\nCustomLog \"$self->{dir}/access.log\" rptest\n" : '';
    my $rest  = mpm_lines($arg) . status_lines($self, $arg) . feature_lines($self, $arg);
    return <<"END" . $rest . fill_in($self, $arg->{conf} // '');
ServerRoot "$self->{dir}"
DefaultRuntimeDir "$self->{dir}/run"
PidFile "$self->{dir}/httpd.pid"
ErrorLog "$self->{dir}/error.log"
LogLevel $level
ServerName localhost
Listen 127.0.0.1:$self->{port}
@{[load_modules($arg)]}
TypesConfig $types
DirectoryIndex index.html
DocumentRoot "$self->{docroot}"
Timeout 20
KeepAliveTimeout 5
GracefulShutdownTimeout 10
$log
<Directory "/">
    AllowOverride @{[$arg->{override} || 'None']}
    Options FollowSymLinks ExecCGI@{[$arg->{ssi} ? ' Includes' : '']}
    Require all granted
</Directory>
END
}

sub choose_ports {
    my ($self, $arg) = @_;
    my $more = $arg->{ports} || 0;
    ($self->{port}, $self->{tls_port}, $self->{status_port}, @{ $self->{more_ports} }) = free_ports(3 + $more);
}

# Chooses ports and writes httpd.conf; called again when a port was taken meanwhile.
sub write_conf {
    my ($self, $arg) = @_;
    choose_ports($self, $arg);
    write_file("$self->{dir}/httpd.conf", text($self, $arg));
}

sub write_tree {
    my ($self, $arg) = @_;
    make_path("$self->{dir}/run", $self->{docroot});
    write_files($self, $arg->{files});
    make_certificate($self->{dir}) if $arg->{tls};
    write_conf($self, $arg);
    chmod 0755, $self->{dir};
    give_away($self->{dir});
}

1;
