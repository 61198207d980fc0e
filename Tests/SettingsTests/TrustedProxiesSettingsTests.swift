import Settings
import Testing
import Wire

/// `trusted_proxies` of a file.
struct TrustedProxiesSettingsTests {
  @Test func `no proxy is trusted unless configured`() throws {
    #expect(try load(upstream).trustedProxies.isEmpty)
    #expect(try load(upstream + "trusted_proxies: []").trustedProxies.isEmpty)
  }

  @Test func `blocks and addresses of both kinds are taken`() throws {
    let text = "trusted_proxies: [10.0.0.0/8, 192.0.2.1, \"2001:db8::/32\", \"::1\", unix]"
    let trusted = try load(upstream + text).trustedProxies
    #expect(trusted.blocks.map(\.prefix) == [104, 128, 32, 128])
    #expect(trusted.blocks.map(\.first.text) == ["10.0.0.0", "192.0.2.1", "2001:db8::", "::1"])
    #expect(trusted.includesUnixSockets)
  }

  @Test func `an address that is given twice is refused`() {
    for (text, column) in [("10.0.0.1, 10.0.0.1/32", 29), ("unix, unix", 25)] {
      #expect(
        issues(upstream + "trusted_proxies: [\(text)]") == [
          "2:\(column): trusted_proxies[1]: is given twice, first in line 2; take one of them out"
        ])
    }
  }

  @Test(arguments: [
    ("10.0.0.1/8", "has bits behind its prefix: write 10.0.0.0/8"),
    ("\"2001:db8::1/64\"", "has bits behind its prefix: write 2001:db8::/64"),
    ("10.0.0.0/33", "must have a prefix from 0 to 32 behind the /"),
    ("\"2001:db8::/129\"", "must have a prefix from 0 to 128 behind the /"),
    ("10.0.0.0/", "must have a prefix from 0 to 32 behind the /"),
    ("10.0.0.0/x", "must have a prefix from 0 to 32 behind the /"),
    (
      "proxy.example",
      "must be an address or a block of addresses, such as 10.0.0.0/8 or 2001:db8::/32, or unix"
    ),
  ]) func `an invalid block is refused with its remedy`(text: String, message: String) {
    #expect(issues(upstream + "trusted_proxies: [\(text)]") == ["2:19: trusted_proxies[0]: \(message)"])
  }
}
