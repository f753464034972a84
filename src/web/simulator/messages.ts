// What the page and its worker say to each other. The worker keeps every run that the page has not told it to forget; a run has one observed simulation a
// policy (and sweep point), numbered in the order in which they ran.
import type {
  DecisionAccount,
  RequestOrder,
  RequestRow,
  SimPicture,
  SimPlace,
  TimelineView,
} from '../../sim/observed/types.js';
import type { CurveReport, SimResult } from '../../sim/report-types.js';

/** The command's options by flag, as their texts are typed: `{ policy: 'kv,round-robin', workers: '8', store: '2TB' }`. What is left out takes its default. */
export type Settings = Readonly<Record<string, string>>;

export type Ask =
  /** Begins a run; one runs at a time. `trace` is null for the built-in workload. */
  | { readonly kind: 'run'; readonly run: number; readonly settings: Settings; readonly trace: File | null }
  /** Ends it with what it has, as Ctrl-C does on the command line. */
  | { readonly kind: 'cancel'; readonly run: number }
  | { readonly kind: 'forget'; readonly run: number }
  /** Nobody waits for the answer to that decision's question any more. */
  | { readonly kind: 'withdraw'; readonly question: number }
  | { readonly kind: 'picture'; readonly ask: number; readonly run: number; readonly simulation: number }
  | {
      readonly kind: 'requests';
      readonly ask: number;
      readonly run: number;
      readonly simulation: number;
      readonly order: RequestOrder;
      readonly from: number;
      readonly count: number;
    }
  | {
      readonly kind: 'timeline';
      readonly ask: number;
      readonly run: number;
      readonly simulation: number;
      readonly place: SimPlace;
      /** Milliseconds. */
      readonly from: number;
      readonly to: number;
      readonly columns: number;
      readonly families: number;
    }
  | {
      readonly kind: 'decision';
      readonly ask: number;
      readonly run: number;
      readonly simulation: number;
      readonly request: number;
    }
  /** What `moonroute simulate --json` (or `--csv`) prints for the same settings, byte for byte. */
  | { readonly kind: 'export'; readonly ask: number; readonly run: number; readonly form: 'json' | 'csv' };

export type Answer =
  | {
      readonly kind: 'progress';
      readonly run: number;
      /** Which simulation of how many; its policy and sweep point for people. */
      readonly simulation: number;
      readonly simulations: number;
      readonly label: string;
      /** Part of its trace, 0 … 1; null where the end is not known. */
      readonly part: number | null;
      readonly requests: number;
      /** Of the simulation that runs, now and then (at most ten times a second). */
      readonly picture: SimPicture | null;
    }
  /** One simulation is complete: its report is the last of `result.runs`. */
  | {
      readonly kind: 'simulated';
      readonly run: number;
      readonly simulation: number;
      readonly result: SimResult;
      readonly picture: SimPicture;
    }
  | { readonly kind: 'curve'; readonly run: number; readonly curve: CurveReport }
  | { readonly kind: 'finished'; readonly run: number; readonly result: SimResult }
  /** Bad settings or a bad trace: `code` of the typed error, and the option's flag where one is to blame. */
  | {
      readonly kind: 'failed';
      readonly run: number;
      readonly code: string;
      readonly text: string;
      readonly flag: string | null;
    }
  | { readonly kind: 'picture'; readonly ask: number; readonly picture: SimPicture }
  | { readonly kind: 'requests'; readonly ask: number; readonly rows: readonly RequestRow[]; readonly total: number }
  | { readonly kind: 'timeline'; readonly ask: number; readonly view: TimelineView }
  | { readonly kind: 'decision'; readonly ask: number; readonly account: DecisionAccount }
  | { readonly kind: 'export'; readonly ask: number; readonly text: string }
  /** A question that could not be answered (a run forgotten meanwhile, a decision's run that was cut short). */
  | { readonly kind: 'refused'; readonly ask: number; readonly text: string };
