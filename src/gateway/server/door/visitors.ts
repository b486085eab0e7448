import type { Principal } from "../../auth/principal.ts";

/** Whoever is being answered over HTTP, so that a token that ends takes along what is under way for it. */
export class Visitors {
  readonly #isOver: (principal: Principal) => boolean;
  readonly #inside = new Map<string, { readonly principal: Principal; readonly ends: Set<() => void> }>();

  constructor(isOver: (principal: Principal) => boolean) {
    this.#isOver = isOver;
  }

  /** `end` is called once its token has ended. Returns what takes it back. */
  add(principal: Principal, end: () => void): () => void {
    const { tokenId } = principal;
    const { ends } = this.#inside.get(tokenId) ?? { ends: new Set<() => void>() };
    this.#inside.set(tokenId, { principal, ends });
    const entry = () => end();
    ends.add(entry);
    return () => {
      ends.delete(entry);
      if (ends.size === 0) this.#inside.delete(tokenId);
    };
  }

  /** Looks at each token once, however much is under way for it. */
  recheck(): void {
    for (const { principal, ends } of [...this.#inside.values()]) {
      if (this.#isOver(principal)) for (const end of [...ends]) end();
    }
  }
}
