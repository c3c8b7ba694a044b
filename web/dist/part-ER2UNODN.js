import{a,b}from"./part-HAON6OOW.js";import"./part-YI26WNFE.js";import"./part-JVS53XD4.js";export{a as Library,b as base};
