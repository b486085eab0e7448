import { useState } from "react";
import { errorText } from "../connect/gateway.tsx";

/** Does the same with every item, and says what failed. */
export function useForEach<T>() {
  const [isBusy, setIsBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const forEach = async (items: readonly T[], act: (item: T) => Promise<unknown>): Promise<void> => {
    setIsBusy(true);
    setError(null);
    const failures = (await Promise.allSettled(items.map(act))).filter((each) => each.status === "rejected");
    setIsBusy(false);
    const [first] = failures;
    if (first === undefined) return;
    setError(
      `${failures.length > 1 ? `${failures.length} of ${items.length} failed. ` : ""}${errorText(first.reason)}`,
    );
  };
  return { isBusy, error, clearError: () => setError(null), forEach };
}
