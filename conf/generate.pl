#!/usr/bin/perl
# Writes the lists and documents that the demo and the series are made of.
# The same arguments always give the same bytes. Addresses are those set aside for documentation and benchmarks
# (RFC 5737, RFC 2544), hosts are under .example, bot names are invented: nothing here accuses anybody.
use strict;
use warnings;
use Compress::Zlib qw(compress crc32);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use Getopt::Long qw(GetOptions);

my $usage = <<'END';
usage: generate.pl COMMAND [OPTIONS]

  deny      --count=N [--from=N]              Deny from ADDRESS, a line each
  access    --count=N [--from=N] [--env=A,B]  Order and Allow, then N Deny lines, then Deny from env=A ...
  lines     --of=WHAT --shape=SHAPE --count=N [--from=N] --env=NAME [--browsermatch]   a SetEnvIf line each
  regex     the same options                  all of them in one SetEnvIf line
  badbots   [--env=BOT,REFERER]               the public bad-bot list's shape: 7,000 referers, 750 user agents
  require   --count=N [--env=BOT,REFERER]     its Require lines, N of them
  page | small | image                        a document of 40 kB HTML, 1 kB text, 17.9 kB PNG
  all DIR                                     every list and document the configurations here include
  fill TEMPLATE KEY=VALUE ...                 TEMPLATE with each @KEY@ replaced

  WHAT   addresses, agents, referers
  SHAPE  anchored ^a\.b$   anchored-bare ^a.b$   escaped a\.b   bare a.b   start ^a\.b
         needless a\-b\.c  word (?:\b)a\.b(?:\b)  tilde ~*a\.b
  --from skips that many of the fixed sequence, so that two lists share nothing.
END

# What stands around a text to make it a pattern, and which of its characters get a backslash.
my %shapes = (
    'anchored'      => { before => '^',      after => '$',      escape => '.' },
    'anchored-bare' => { before => '^',      after => '$',      escape => '' },
    'escaped'       => { before => '',       after => '',       escape => '.' },
    'bare'          => { before => '',       after => '',       escape => '' },
    'start'         => { before => '^',      after => '',       escape => '.' },
    'needless'      => { before => '',       after => '',       escape => '.-' },
    'word'          => { before => '(?:\b)', after => '(?:\b)', escape => '.' },
    'tilde'         => { before => '~*',     after => '',       escape => '.' },
);

my %sources = (
    addresses => { values => \&addresses, directive => 'SetEnvIf Remote_Addr' },
    agents    => { values => \&agents,    directive => 'SetEnvIfNoCase User-Agent' },
    referers  => { values => \&referers,  directive => 'SetEnvIfNoCase Referer' },
);

my %commands = (
    deny    => \&deny,
    access  => \&access,
    lines   => \&lines,
    regex   => \&regex,
    badbots => \&badbots,
    require => \&require_lines,
    page    => \&page,
    small   => \&small,
    image   => \&image,
);

# Addresses 0..299 are denied by name, 300..699 stand in the escaped regex, 700..1099 in the bare one.
# The series has one variable, deny_ua, so that one "Deny from env=" does for all lists.
my @escaped = (of => 'addresses', from => 300, count => 400, shape => 'anchored');
my @bare    = (of => 'addresses', from => 700, count => 400, shape => 'anchored-bare');
my @agents  = (of => 'agents', env => 'deny_ua');
my @files   = (
    [ 'lists/access.conf',            access  => count => 300, env => 'deny_ip,deny_ua,deny_ref' ],
    [ 'lists/addresses.conf',         regex   => @escaped, env => 'deny_ip' ],
    [ 'lists/addresses-bare.conf',    regex   => @bare, env => 'deny_ip' ],
    [ 'lists/useragents.conf',        lines   => @agents, count => 60, shape => 'escaped' ],
    [ 'lists/referers.conf',          lines   => of => 'referers', count => 40, shape => 'escaped', env => 'deny_ref' ],
    [ 'lists/deny-200.conf',          deny    => count => 200 ],
    [ 'lists/deny-300.conf',          deny    => count => 300 ],
    [ 'lists/deny-60.conf',           deny    => count => 60 ],
    [ 'lists/address-lines.conf',     lines   => @escaped, env => 'deny_ip' ],
    [ 'lists/address-lines-bare.conf', lines  => @bare, env => 'deny_ip' ],
    [ 'lists/address-lines-substring.conf', lines => @escaped, shape => 'escaped', env => 'deny_ip' ],
    [ 'lists/useragents-few.conf',    lines   => @agents, count => 8, shape => 'escaped' ],
    [ 'lists/useragents-browsermatch.conf', lines => @agents, count => 60, shape => 'escaped', browsermatch => 1 ],
    [ 'lists/useragents-needless.conf', lines => @agents, count => 60, shape => 'needless' ],
    [ 'lists/referers-few.conf',      lines   => of => 'referers', count => 4, shape => 'escaped', env => 'deny_ua' ],
    [ 'lists/regex-addresses.conf',   regex   => @escaped, env => 'deny_ua' ],
    [ 'lists/regex-agents.conf',      regex   => @agents, count => 60, shape => 'start' ],
    [ 'lists/regex-referers.conf',    regex   => of => 'referers', count => 40, shape => 'escaped', env => 'deny_ua' ],
    # Step 9: of 500 patterns 350 have neither anchors nor escaped dots.
    [ 'lists/mixed-addresses.conf',   regex   => @escaped, count => 120, env => 'deny_ua' ],
    [ 'lists/mixed-addresses-bare.conf', regex => @escaped, from => 420, count => 280, shape => 'bare',
        env => 'deny_ua' ],
    [ 'lists/mixed-agents.conf',      regex   => @agents, count => 18, shape => 'start' ],
    [ 'lists/mixed-agents-bare.conf', regex   => @agents, from => 18, count => 42, shape => 'bare' ],
    [ 'lists/mixed-referers.conf',    regex   => of => 'referers', count => 12, shape => 'escaped', env => 'deny_ua' ],
    [ 'lists/mixed-referers-bare.conf', regex => of => 'referers', from => 12, count => 28, shape => 'bare',
        env => 'deny_ua' ],
    [ 'lists/badbots.conf',           badbots => env => 'bad_bot,spam_ref' ],
    [ 'lists/badbots-require.conf',   require => count => 400, env => 'bad_bot,spam_ref' ],
    [ 'htdocs/index.html',            'page' ],
    [ 'htdocs/small.txt',             'small' ],
    [ 'htdocs/image.png',             'image' ],
);

my %words = (
    month     => [qw(January March April May June July September October November)],
    adjective => [
        qw(old quiet narrow steep early open broken wet stony green shaded distant common northern lower hidden wooden
            careful short empty bright heavy slow friendly unusual dry frozen crowded simple patient yellow covered)
    ],
    noun => [
        qw(path bridge meadow hut river map gate orchard ridge signpost spring forest station mill farm slope lake
            chapel quarry fence valley village summit crossing cellar shelter garden tower stream market ferry stone
            letter kettle lantern ladder wagon barn hedge boot rope bench tunnel harbour stair cloud winter
            evening morning guide)
    ],
    verb => [
        qw(follows crosses reaches leaves avoids shows hides joins passes repairs opens closes remembers measures paints
            describes borrows carries finds needs covers keeps)
    ],
    place => [
        'below the {noun}', 'near the {adjective} {noun}', 'on the far side', 'behind a {noun}',
        'between the {noun} and the {noun}', 'beyond the {adjective} {noun}', 'at the edge of the {noun}'
    ],
    frame => [
        'the {adjective} {noun} {verb} a {noun} {place}.',
        'every {noun} {verb} the {adjective} {noun}, and the {noun} {verb} it.',
        'in {month} a {noun} {verb} the {noun} {place}, '
            . '<a href="/routes/{noun}-{noun}">a {adjective} {noun}</a> {verb} it.',
        'who {verb} the {noun} {place} soon {verb} the {adjective} {noun}.',
        '{place} the {noun} is {adjective}, {adjective} and <em>{adjective}</em>.',
        'after the {noun} our {adjective} {noun} {verb} one more {noun}.',
    ],
);

main(@ARGV);

sub main {
    my $command = shift @ARGV // '';
    return write_all(@ARGV) if $command eq 'all';
    return fill(@ARGV)      if $command eq 'fill';
    my $write = $commands{$command} or die $usage;
    my %option = (count => 0, from => 0, env => '');
    GetOptions(\%option, 'count=i', 'from=i', 'of=s', 'shape=s', 'env=s', 'browsermatch') && !@ARGV or die $usage;
    binmode STDOUT;
    print $write->(%option);
}

sub write_all {
    my ($directory) = @_;
    defined $directory or die $usage;
    for my $file (@files) {
        my ($name, $command, %option) = @$file;
        write_file("$directory/$name", $commands{$command}->(count => 0, from => 0, env => '', %option));
    }
}

# A key too many or too few is a mistake in the caller, and httpd's message about it would name neither.
sub fill {
    my ($template, @pairs) = @_;
    defined $template or die $usage;
    my %value = map { /^(\w+)=(.*)$/s ? ($1 => $2) : die "generate.pl: fill wants KEY=VALUE, not '$_'\n" } @pairs;
    my %used;
    my $text = read_file($template);
    $text =~ s/\@(\w+)\@/$used{$1} = 1; $value{$1} \/\/ die "generate.pl: $template needs a value for $1\n"/ge;
    exists $used{$_} or die "generate.pl: $template has no \@$_\@\n" for sort keys %value;
    print $text;
}

# ---- lists

sub deny {
    my %option = @_;
    return join '', map { "Deny from $_\n" } addresses(@option{qw(from count)});
}

sub access {
    my %option = @_;
    my $by_env = join '', map { "Deny from env=$_\n" } split /,/, $option{env};
    return "Order Allow,Deny\nAllow from all\n" . deny(%option) . $by_env;
}

sub lines {
    my %option    = @_;
    my $directive = directive(%option);
    my @patterns  = map { pattern($_, $option{shape}) } values_of(%option);
    return join '', map { qq($directive "$_" $option{env}\n) } @patterns;
}

# The anchors stand once, around the group: ^(a|b|c)$
sub regex {
    my %option       = @_;
    my $shape        = shape($option{shape});
    my @alternatives = map { escape($_, $shape->{escape}) } values_of(%option);
    my $pattern      = $shape->{before} . '(' . join('|', @alternatives) . ')' . $shape->{after};
    return sprintf "%s \"%s\" %s\n", directive(%option), $pattern, $option{env};
}

sub badbots {
    my %option = @_;
    my ($bot_env, $referer_env) = two_variables($option{env});
    my @agents   = map { pattern($_, 'word') } agents(0, 750);
    my @referers = map { pattern($_, 'tilde') } referers(0, 7000);
    return join '', (map { qq(BrowserMatchNoCase "$_" $bot_env\n) } @agents),
        (map { "SetEnvIfNoCase Referer $_ $referer_env\n" } @referers);
}

sub require_lines {
    my %option   = @_;
    my @by_env   = map { "Require not env $_" } two_variables($option{env});
    my $ip_count = $option{count} - 1 - @by_env;
    $ip_count > 0 or die "generate.pl: require wants --count of 4 or more\n";
    my @by_ip = map { "Require not ip $_" } addresses($option{from}, $ip_count);
    my $lines = join '', map { "        $_\n" } 'Require all granted', @by_env, @by_ip;
    return "<RequireAny>\n    <RequireAll>\n$lines    </RequireAll>\n</RequireAny>\n";
}

sub two_variables {
    my ($names) = @_;
    my ($bot, $referer) = split /,/, $names || 'bad_bot,spam_ref';
    return ($bot, $referer // $bot);
}

sub directive {
    my %option = @_;
    length $option{env} or die "generate.pl: --env=NAME is missing\n";
    return $option{browsermatch} ? 'BrowserMatchNoCase' : source(%option)->{directive};
}

sub values_of {
    my %option = @_;
    return source(%option)->{values}->(@option{qw(from count)});
}

sub source {
    my %option = @_;
    return $sources{ $option{of} // '' } // die "generate.pl: --of is one of @{[sort keys %sources]}\n";
}

sub shape {
    my ($name) = @_;
    return $shapes{ $name // '' } // die "generate.pl: --shape is one of @{[sort keys %shapes]}\n";
}

sub pattern {
    my ($text, $shape_name) = @_;
    my $shape = shape($shape_name);
    return $shape->{before} . escape($text, $shape->{escape}) . $shape->{after};
}

sub escape {
    my ($text, $characters) = @_;
    $text =~ s/([\Q$characters\E])/\\$1/g if length $characters;
    return $text;
}

# ---- what the lists are made of: endless in effect, and each a fixed sequence

# The three documentation networks first, then the benchmark range.
sub addresses {
    my ($from, $count) = @_;
    my @hosts = map { my $net = $_; map { "$net.$_" } 1 .. 254 } '192.0.2', '198.51.100', '203.0.113';
    my @documentation = @hosts[ scattered(scalar @hosts, scalar @hosts) ];
    my $benchmark     = $from + $count - @documentation;
    my @more =
        map { sprintf '198.%d.%d.%d', 18 + ($_ >> 16), ($_ >> 8) & 255, $_ & 255 } scattered(1 << 17, $benchmark);
    return (@documentation, @more)[ $from .. $from + $count - 1 ];
}

sub agents {
    my ($from, $count) = @_;
    my @suffixes = qw(Bot Spider Crawl Grab Fetch Copier Leech Harvest Scan Sucker Mirror);
    return map { ucfirst($_->[0]) . '-' . $suffixes[ $_->[1] % @suffixes ] } invented($from, $count);
}

sub referers {
    my ($from, $count) = @_;
    my @suffixes = qw(deals clicks traffic ranks offers loans prizes);
    return map { "$_->[0]-$suffixes[$_->[1] % @suffixes].example" } invented($from, $count);
}

# Pairs of an invented word and its number.
sub invented {
    my ($from, $count) = @_;
    my @start  = qw(bra dru fel gor hul jor kla lum mex nor plu quo rix sno tav ulm vex wob yor zan);
    my @middle = qw(ba di fo ga hu ki lo mu na pi ro su te vo wi xa ye zu);
    my @end    = qw(dax fin gol hex jin kor lux mox nik pod rix sol tum vin wick xor yon zet lop bim);
    my @number = scattered(@start * @middle * @end, $from + $count);
    my @word;
    for my $index ($from .. $from + $count - 1) {
        my $rest = int($number[$index] / @start);
        my $word = $start[ $number[$index] % @start ] . $middle[ $rest % @middle ] . $end[ int($rest / @middle) ];
        push @word, [ $word, $index ];
    }
    return @word;
}

# The first $count numbers of a fixed scattered order of 0 .. $size - 1. The stride is a prime that divides no
# $size used here, so no number comes twice.
sub scattered {
    my ($size, $count) = @_;
    $count <= $size or die "generate.pl: at most $size different values, $count wanted\n";
    return map { ($_ * 7919 + 101) % $size } 0 .. $count - 1;
}

# ---- documents

sub page {
    srand 7;
    my @sections = map { section($_) } 1 .. 400;
    my $html     = page_head();
    $html .= shift @sections while length($html) < 40_000;
    my $footer = '<footer><p>Written by the members. <a href="/small.txt">Terms</a></p></footer>';
    return "$html</main>\n$footer\n</body>\n</html>\n";
}

sub page_head {
    my @pages = qw(news routes members library weather shop contact);
    my $links =
        join '', map { qq(  <li class="nav-item"><a class="nav-link" href="/$_/">) . ucfirst . "</a></li>\n" } @pages;
    return <<"END";
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Valley Walkers</title>
<link rel="icon" href="/image.png">
</head>
<body class="page page-front">
<nav class="site-nav"><ul>
$links</ul></nav>
<main id="content">
END
}

sub one_of {
    my ($kind) = @_;
    my $choices = $words{$kind};
    return $choices->[ int rand @$choices ];
}

sub section {
    my ($number)   = @_;
    my $paragraphs = paragraph() . paragraph();
    my $title      = ucfirst sprintf '%s %s', one_of('adjective'), one_of('noun');
    return <<"END";
<article class="entry" id="entry-$number">
<h2 class="entry-title"><a href="/news/@{[2000 + int rand 7000]}">$title</a></h2>
<p class="entry-meta">No. $number, @{[1 + int rand 28]} @{[one_of('month')]}, @{[int rand 90]} comments</p>
$paragraphs</article>
END
}

sub paragraph {
    return '<p class="text">' . join(' ', map { sentence() } 1 .. 3 + rand 4) . "</p>\n";
}

# {noun} in a frame stands for a noun, {place} for a place, which again has nouns in it.
sub sentence {
    my $text = one_of('frame');
    1 while $text =~ s/\{(\w+)\}/one_of($1)/ge;
    return ucfirst $text;
}

sub small {
    srand 11;
    my $text = '';
    $text .= sentence() . "\n" while length($text) < 2048;
    $text =~ s/<[^>]*>//g;
    return substr($text, 0, 1023) . "\n";
}

# A valid grey PNG of random dots; a comment chunk brings it to exactly 17,900 bytes.
sub image {
    srand 13;
    my ($width, $height, $wanted_bytes) = (132, 132, 17_900);
    my $rows  = join '', map { "\0" . join '', map { chr int rand 256 } 1 .. $width } 1 .. $height;
    my $start = "\x89PNG\r\n\x1a\n" . chunk('IHDR', pack 'NNCCCCC', $width, $height, 8, 0, 0, 0, 0);
    my $end   = chunk('IDAT', compress($rows)) . chunk('IEND', '');
    my $spare = $wanted_bytes - length($start) - length($end) - length chunk('tEXt', "Comment\0");
    return $start . chunk('tEXt', "Comment\0" . '.' x $spare) . $end;
}

sub chunk {
    my ($type, $data) = @_;
    return pack('N', length $data) . $type . $data . pack 'N', crc32($type . $data);
}

# ---- files

sub read_file {
    my ($path) = @_;
    open my $in, '<:raw', $path or die "generate.pl: cannot read $path: $!\n";
    local $/;
    return scalar <$in>;
}

sub write_file {
    my ($path, $bytes) = @_;
    make_path(dirname($path));
    open my $out, '>:raw', $path or die "generate.pl: cannot write $path: $!\n";
    print $out $bytes;
    close $out or die "generate.pl: cannot write $path: $!\n";
}
