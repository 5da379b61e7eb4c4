package store

import "syscall"

// remote are file systems whose files another machine may write, by the magic number that statfs gives
// (statfs(2) and linux/magic.h). SQLite's WAL needs memory that all its processes share, so it fails there.
var remote = map[uint32]string{
	0x00006969: "NFS",
	0x0000517b: "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x00c36400: "Ceph",
	0x5346414f: "AFS",
	0x19830326: "BeeGFS",
	0x01021997: "9P",
	0x73757245: "Coda",
	0x0000564c: "NCP",
}

// network names the network file system that dir is on; empty: none that is known.
func network(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return ""
	}
	return remote[uint32(s.Type)]
}
