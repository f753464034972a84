// An application as a bundler sees it: it imports the package by its names. The page asks it for what behaviours.js sees.
import * as moonroute from 'moonroute';
import * as sim from 'moonroute/sim';
import { behaviours } from './behaviours.js';

globalThis.seen = (input) => behaviours({ moonroute, sim, input });
