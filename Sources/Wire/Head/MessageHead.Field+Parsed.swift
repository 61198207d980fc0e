extension MessageHead.Field {
  /// Creates a field from positions that a parser outside this module has found.
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
