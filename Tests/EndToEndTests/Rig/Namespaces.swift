import Glibc

/// The mount namespaces of Linux, by which a process sees other files than its neighbours. Some containers forbid them.
enum Namespaces {
  static let mayBeMade =
    system("unshare --map-root-user --mount mount --bind /etc/hostname /etc/hosts 2>/dev/null") == 0
}
