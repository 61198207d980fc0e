/// A SHA-256 digest over the parts of a payload, and the recipe that it was made with.
public struct Fingerprint: Hashable, Sendable {
  public var recipe: Recipe
  public var digest: Digest256

  public init(recipe: Recipe, digest: Digest256) {
    self.recipe = recipe
    self.digest = digest
  }
}
