#if !Outbox
  #error("SemelOutbox needs the trait Outbox: .package(url: …, traits: [\"Outbox\"]).")
#endif
