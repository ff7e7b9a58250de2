package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrAddress says that an address is none that notices may go to.
var ErrAddress = errors.New("the address is not allowed")

// private are networks of this machine and of organisations that netip does not tell. What is in never is
// reserved, serves secrets of the machine itself (Amazon's metadata), or holds addresses of other networks within
// it, which are not seen here.
var private = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
}

var never = []netip.Prefix{
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("fec0::/10"),
	netip.MustParsePrefix("fd00:ec2::/32"), netip.MustParsePrefix("::/96"), netip.MustParsePrefix("::ffff:0:0:0/96"),
}

// guard refuses addresses when they are dialled, after their name was looked up: what the name says
// to another question does not count.
func guard(allowPrivate bool) func(network, address string, c syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("%w: %s", ErrAddress, address)
		}
		return checkAddress(to.Addr(), allowPrivate)
	}
}

func checkAddress(addr netip.Addr, allowPrivate bool) error {
	addr = addr.WithZone("").Unmap()
	in := func(prefixes []netip.Prefix) bool {
		for _, p := range prefixes {
			if p.Contains(addr) {
				return true
			}
		}
		return false
	}
	switch {
	case !addr.IsValid(), addr.IsLinkLocalUnicast(), addr.IsMulticast(), addr.IsUnspecified(), in(never) && !addr.IsLoopback():
		return fmt.Errorf("%w: %s is nobody's server", ErrAddress, addr)
	case allowPrivate:
		return nil
	case addr.IsLoopback(), addr.IsPrivate(), in(private):
		return fmt.Errorf("%w: %s is private, and ADJOURN_WEBHOOK_ALLOW_PRIVATE=true is not set", ErrAddress, addr)
	}
	return nil
}
