/// SHA-256 over the payload's parts, and the recipe by which it was made.
public struct Fingerprint: Hashable, Sendable {
  public var recipe: Recipe
  public var digest: Digest256

  public init(recipe: Recipe, digest: Digest256) {
    self.recipe = recipe
    self.digest = digest
  }
}
