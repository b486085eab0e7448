import { TextSearch } from "lucide-react";
import { Suspense, useEffect, useState } from "react";
import buttons from "../ui/button.module.css";
import { Kbd } from "../ui/keys.tsx";
import { lazyPart } from "../ui/lazy-part.tsx";
import { PageBoundary } from "../ui/page-boundary.tsx";
import styles from "./palette-button.module.css";

const loadPalette = () => import("./palette.tsx");
const Palette = lazyPart(loadPalette);

/** Delays loading the palette until the first view has sent its requests. */
const preloadMs = 2000;

/** Opens the palette, which Mod+K also does from anywhere. */
export function PaletteButton() {
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: globalThis.KeyboardEvent) => {
      if (
        event.key.toLowerCase() !== "k" ||
        !(event.ctrlKey || event.metaKey) ||
        event.altKey ||
        event.shiftKey
      )
        return;
      event.preventDefault();
      setIsOpen((before) => !before);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  // Loaded before it is needed, so that it also opens while the gateway is offline.
  useEffect(() => {
    const timer = setTimeout(() => void loadPalette().catch(() => undefined), preloadMs);
    return () => clearTimeout(timer);
  }, []);
  const close = () => setIsOpen(false);
  return (
    <>
      <button type="button" className={styles.button} onClick={() => setIsOpen(true)}>
        <TextSearch size={16} aria-hidden />
        Go to… <Kbd keys="Mod+K" />
      </button>
      {isOpen && (
        <PageBoundary path="" fallback={(retry) => <PaletteFailure onRetry={retry} onClose={close} />}>
          <Suspense fallback={null}>
            <Palette onClose={close} />
          </Suspense>
        </PageBoundary>
      )}
    </>
  );
}

/** Shown over the page, because the button has no space for it. Takes the focus that the palette would have taken. */
function PaletteFailure({
  onRetry,
  onClose,
}: {
  readonly onRetry: () => void;
  readonly onClose: () => void;
}) {
  return (
    <div
      className={styles.failure}
      role="alert"
      onKeyDown={({ key }) => {
        if (key === "Escape") onClose();
      }}
    >
      <p>“Go to…” could not be loaded from the gateway.</p>
      <button type="button" autoFocus className={buttons.button} onClick={onRetry}>
        Try again
      </button>
      <button type="button" className={buttons.button} data-look="quiet" onClick={onClose}>
        Close <Kbd keys="Escape" />
      </button>
    </div>
  );
}
