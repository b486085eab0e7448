import type { PointerEvent, RefObject } from "react";
import { useEffect, useEffectEvent, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Stretch } from "./time-scale.ts";
import { TimeScale } from "./time-scale.ts";

const maxZoom = 5000;
/** Initially, periods are not narrower than this fraction of their readable width. */
const minStartZoom = 0.35;
const dragThreshold = 4;

interface View {
  /** `fit` shows everything. So does `start`, unless there are very many periods. */
  readonly zoom: number | "fit" | "start";
  /** The first visible pixel. `end` follows the current time. */
  readonly left: number | "end";
}

interface Viewport {
  readonly scale: TimeScale;
  readonly left: number;
  /** Whether everything is visible, so that zooming out shows no more. */
  readonly isWhole: boolean;
  zoomBy(factor: number, x?: number): void;
  panBy(pixels: number): void;
  showAll(): void;
  /** Scrolls a point in time into view unless it is already visible. */
  reveal(at: number): void;
}

/** The visible part of a time scale. It can be moved with the wheel, by dragging, and by calls. */
export function useViewport(
  plot: RefObject<HTMLElement | null>,
  stretches: readonly Stretch[],
  width: number,
): Viewport {
  const [view, setView] = useState<View>({ zoom: "start", left: "end" });
  const fitZoom = useMemo(
    () => Math.min(1, width / Math.max(1, new TimeScale(stretches, width, 1).width)),
    [stretches, width],
  );
  const zoomOf = (zoom: View["zoom"]) =>
    Math.max(fitZoom, zoom === "fit" ? 0 : zoom === "start" ? minStartZoom : zoom);
  const place = ({ zoom, left }: View, scale = new TimeScale(stretches, width, zoomOf(zoom))) => {
    const limit = Math.max(0, scale.width - width);
    return { scale, limit, left: left === "end" ? limit : Math.min(left, limit) };
  };
  const zoom = zoomOf(view.zoom);
  const scale = useMemo(() => new TimeScale(stretches, width, zoom), [stretches, width, zoom]);
  const { left, limit: maxLeft } = place(view, scale);
  const clamp = (next: number, limit: number) => (next >= limit - 1 ? "end" : Math.max(0, next));

  // Several moves can arrive before the next render, so each one continues from the previous one.
  const panBy = (pixels: number) =>
    setView((before) => {
      const from = place(before);
      return { zoom: before.zoom, left: clamp(from.left + pixels, from.limit) };
    });
  const zoomBy = (factor: number, x = width / 2) =>
    setView((before) => {
      const from = place(before);
      const next = Math.min(maxZoom, zoomOf(before.zoom) * factor);
      if (next <= fitZoom) return { zoom: "fit", left: "end" };
      const to = place({ zoom: next, left: "end" });
      return { zoom: next, left: clamp(to.scale.xOf(from.scale.timeAt(from.left + x)) - x, to.limit) };
    });
  const reveal = (at: number) => {
    const x = scale.xOf(at);
    if (x < left + 8 || x > left + width - 8)
      setView({ zoom: view.zoom, left: clamp(x - width / 2, maxLeft) });
  };

  const onWheel = useEffectEvent((event: WheelEvent) => {
    const isZoom = event.ctrlKey || event.metaKey || event.altKey;
    const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (isZoom) {
      const box = plot.current?.getBoundingClientRect();
      zoomBy(Math.exp(-event.deltaY * 0.002), event.clientX - (box?.left ?? 0));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY) && maxLeft > 0) {
      panBy(sideways);
    } else {
      return;
    }
    event.preventDefault();
  });
  useEffect(() => {
    const target = plot.current;
    // React's own wheel listeners are passive and cannot prevent the page from zooming.
    target?.addEventListener("wheel", onWheel, { passive: false });
    return () => target?.removeEventListener("wheel", onWheel);
  }, [plot]);

  const showAll = () => setView({ zoom: "fit", left: "end" });
  return { scale, left, isWhole: zoom <= fitZoom, zoomBy, panBy, showAll, reveal };
}

/** Drags the time axis. If the pointer moved, the press is not treated as a click. */
export function useDrag(panBy: (pixels: number) => void) {
  const drag = useRef<{ x: number; hasMoved: boolean } | null>(null);
  return {
    onPointerDown: (event: PointerEvent) => {
      if (event.button === 0) drag.current = { x: event.clientX, hasMoved: false };
    },
    onPointerMove: (event: PointerEvent) => {
      const { current } = drag;
      if (current === null || event.buttons === 0) return;
      const moved = event.clientX - current.x;
      if (!current.hasMoved && Math.abs(moved) < dragThreshold) return;
      if (!current.hasMoved) event.currentTarget.setPointerCapture(event.pointerId);
      drag.current = { x: event.clientX, hasMoved: true };
      panBy(-moved);
    },
    onPointerCancel: () => {
      drag.current = null;
    },
    onClickCapture: (event: { preventDefault(): void; stopPropagation(): void }) => {
      if (drag.current?.hasMoved === true) {
        event.preventDefault();
        event.stopPropagation();
      }
      drag.current = null;
    },
    onDragStart: (event: { preventDefault(): void }) => event.preventDefault(),
  };
}

/** An element's current size, or 0 until it is known. */
export function useSize(element: RefObject<Element | null>): {
  readonly width: number;
  readonly height: number;
} {
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const target = element.current;
    if (target === null) return;
    const measure = () => {
      const { clientWidth: width, clientHeight: height } = target;
      setSize((before) => (before.width === width && before.height === height ? before : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(target);
    return () => observer.disconnect();
  }, [element]);
  return size;
}
