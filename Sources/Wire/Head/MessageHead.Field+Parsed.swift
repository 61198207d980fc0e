extension MessageHead.Field {
  /// A field line as a parser outside of this module found it.
  public init(
    nameStart: Int, nameLength: UInt16, valueStart: Int, valueLength: Int, name: FieldName
  ) {
    self.nameStart = UInt32(nameStart)
    self.nameLength = nameLength
    self.valueStart = UInt32(valueStart)
    self.valueLength = UInt32(valueLength)
    self.name = name
  }
}
