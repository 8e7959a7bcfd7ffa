#!/usr/bin/env bash
# gs: a page of curves, clipped and filled, and text, drawn to a raster of 24 bits.
#
# gs calls the C library's malloc, or the preloaded one, for clumps of memory that it divides and
# collects: in a full run 47,000 requests, half of them larger than 4 KiB, 500 MB in all. The
# picture must equal that of the same gs without a preloaded allocator.
source "${BASH_SOURCE[0]%/*}/common.sh"
draw() { "$@" gs -q -dSAFER -dBATCH -dNOPAUSE -sDEVICE=ppmraw -r100 -o "$name.ppm" "$name.ps"; }
case "$verb" in
  prepare)
    awk -v n="$(sized 1 7)" -v shapes="$(sized 2000 4000)" 'BEGIN {
      print "%!PS"
      print "/Times-Roman findfont 9 scalefont setfont"
      for (page = 1; page <= n; page++) {
        printf "%d srand\n/r { rand exch mod } bind def\n", page
        print shapes " { 600 r 800 r moveto 600 r 800 r 600 r 800 r 600 r 800 r curveto closepath"
        print "  10 r 10 div 10 r 10 div 10 r 10 div setrgbcolor"
        print "  5 r 0 eq { fill } { 3 r setlinewidth stroke } ifelse } repeat"
        print "0 setgray 1500 { 600 r 800 r moveto 20 string dup 0 97 26 r add put 99999 r exch cvs show } repeat"
        print "300 { gsave 600 r 800 r moveto 5 { 600 r 800 r lineto } repeat closepath clip"
        print "  600 r 800 r 100 0 360 arc 9 r 10 div setgray fill grestore } repeat showpage"
      }
    }' >"$name.ps"
    draw plain
    mv "$name.ppm" "$name.expected"
    measure_script
    ;;
  run)
    draw command
    same "$name.ppm" "$name.expected"
    ;;
  *) fail "$verb: give prepare or run" ;;
esac
