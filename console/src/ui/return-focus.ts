import { useEffect } from "react";

/**
 * The element that receives focus when a control is removed: a row in its list, or the element that opened or contains
 * the control.
 */
const row = '[data-roving][tabindex="0"]';
const heir = "[data-takes-focus]:not(:disabled)";

/**
 * When a focused element is removed, the browser moves the focus to the page as a whole, where no list keys work and
 * Tab starts at the top. This hook moves the focus to the nearest element instead.
 */
export function useReturnFocus(): void {
  useEffect(() => {
    const watching = new AbortController();
    const { signal } = watching;
    let focused: HTMLElement | null = null;
    let around: readonly Element[] = [];
    const note = ({ target }: FocusEvent) => {
      if (!(target instanceof HTMLElement)) return;
      focused = target;
      around = ancestorsOf(target);
    };
    const forget = () => {
      // Elements that are removed or disabled also lose focus.
      queueMicrotask(() => {
        if (focused?.isConnected === true && !focused.matches(":disabled, :focus")) focused = null;
      });
    };
    document.addEventListener("focusin", note, { signal });
    document.addEventListener("focusout", forget, { signal });
    const observer = new MutationObserver(() => {
      if (focused === null || document.activeElement !== document.body) return;
      if (focused.isConnected)
        return void (focused.matches(":disabled") || focused.focus({ preventScroll: true }));
      const [first, second] = focused.hasAttribute("data-roving") ? [row, heir] : [heir, row];
      for (const element of around) {
        if (!element.isConnected) continue;
        // A page that replaces another receives the focus at its beginning.
        const next =
          element.id === "content"
            ? element
            : (element.querySelector(first) ?? element.querySelector(second) ?? element);
        if (next instanceof HTMLElement && next.matches("[tabindex], a, button"))
          return next.focus({ preventScroll: true });
      }
      focused = null;
      // A closed dialog restores focus itself unless the previously focused element has also been removed.
      requestAnimationFrame(() => {
        if (document.activeElement === document.body) document.getElementById("content")?.focus();
      });
    });
    observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ["disabled"] });
    return () => {
      watching.abort();
      observer.disconnect();
    };
  }, []);
}

function ancestorsOf(element: Element): readonly Element[] {
  const found: Element[] = [];
  for (let at = element.parentElement; at !== null && at !== document.body; at = at.parentElement)
    found.push(at);
  return found;
}
