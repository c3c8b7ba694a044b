import{a,b}from"./part-ONYVZSER.js";import"./part-4NUWE22D.js";import"./part-YRHFJMS6.js";import"./part-JVS53XD4.js";export{a as Library,b as base};
