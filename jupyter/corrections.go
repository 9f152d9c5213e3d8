package main

// patches correct modules in the copies that the kernel is built from. What is more
// than a few lines is in _gomacro, whose files are added to the packages of that name.
var patches = map[string][]patch{gomacro: {
	{
		// A constant of a compiled type such as trace.Kind became a reflect.Value, which no string equals:
		// record.Kind == "launch" was false, and no cell said so.
		file: "base/untyped/lit.go",
		old:  "ret = v.Convert(t.ReflectType())",
		new:  "ret = v.Convert(t.ReflectType()).Interface()",
	},
	{
		// _, _ = a, b called a setter that the blank name does not have.
		file: "fast/assignment.go",
		old:  "if ln == 2 && rn == 2 && assign[0].placekey == nil && assign[1].placekey == nil {",
		new: "if ln == 2 && rn == 2 && assign[0].placekey == nil && assign[1].placekey == nil &&\n" +
			"\t\t(assign[0].setvar != nil || assign[0].setplace != nil) && (assign[1].setvar != nil || assign[1].setplace != nil) {",
	},
	{
		// select {} did nothing.
		file: "fast/select.go",
		old:  "if node.Body == nil || len(node.Body.List) == 0 {\n",
		new:  "if node.Body == nil || len(node.Body.List) == 0 {\n\t\tc.append(selectForever)\n",
	},
	{
		// An array too big for the machine ended the process.
		file: "fast/type.go",
		old:  "\t\tt = universe.ArrayOf(count, t)\n",
		new:  "\t\tc.mustFit(count, t)\n\t\tt = universe.ArrayOf(count, t)\n",
	},
	{
		file: "fast/type.go",
		old:  "\t\tt = universe.StructOf(fields)\n",
		new:  "\t\tc.structMustFit(fields)\n\t\tt = universe.StructOf(fields)\n",
	},
	{
		file: "fast/compositelit.go",
		old:  "\t\tt = c.Universe.ArrayOf(size, t.Elem())\n",
		new:  "\t\tc.mustFit(size, t.Elem())\n\t\tt = c.Universe.ArrayOf(size, t.Elem())\n",
	},
	{
		// A slice whose last index is far away is as big as one that is made.
		file: "fast/compositelit.go",
		old:  "\tsize, keys, funvals := c.compositeLitElements(t, false, node)\n\n\trtelem := rtype.Elem()\n",
		new:  "\tsize, keys, funvals := c.compositeLitElements(t, false, node)\n\tc.mustFit(size, t.Elem())\n\n\trtelem := rtype.Elem()\n",
	},
	{
		// append(x, y...) went element by element, and nothing could stop it.
		file: "fast/builtin.go",
		old:  "\t\t\t\t\targslice := unwrapSlice(arg1)\n\t\t\t\t\treturn xr.Append(arg0, argslice...)\n",
		new:  "\t\t\t\t\treturn appendSlice(arg0, arg1)\n",
	},
	{
		// append(b, "text"...) was refused.
		file: "fast/builtin.go",
		old:  "\t\targi := c.Expr1(node.Args[i], nil)\n\t\tif argi.Const() {\n\t\t\targi.ConstTo(telem)\n\t\t} else if ti := argi.Type; ti == nil || !ti.AssignableTo(telem) {\n\t\t\treturn c.badBuiltinCallArgType(sym.Name, node.Args[i], ti, telem)\n\t\t}\n",
		new: "\t\targi := c.Expr1(node.Args[i], nil)\n" +
			"\t\tif ti := argi.DefaultType(); node.Ellipsis != token.NoPos && ti != nil && ti.Kind() == r.String && t0.Elem().Kind() == r.Uint8 {\n" +
			"\t\t\tif argi.Const() {\n\t\t\t\targi.ConstTo(ti)\n\t\t\t}\n\t\t} else if argi.Const() {\n\t\t\targi.ConstTo(telem)\n" +
			"\t\t} else if ti := argi.Type; ti == nil || !ti.AssignableTo(telem) {\n\t\t\treturn c.badBuiltinCallArgType(sym.Name, node.Args[i], ti, telem)\n" +
			"\t\t} else {\n\t\t\targi.To(c, telem)\n\t\t}\n",
	},
	{
		// A named number or string lost its methods on the way into an interface.
		file: "fast/literal.go",
		old:  "\tk := e.Type.Kind()\n\tif reflect.IsOptimizedKind(k) {\n",
		new:  "\tk := e.Type.Kind()\n\tif reflect.IsOptimizedKind(k) && (t.Kind() != r.Interface || t.NumMethod() == 0) {\n",
	},
	{
		file: "fast/literal.go",
		old:  "\t\tlit.Type = t\n\t\t// FIXME: use (*Comp).Converter(), requires a *Comp parameter\n",
		new:  "\t\tif v, ok := constTo(value, tfrom, t); ok {\n\t\t\tlit.Type, lit.Value = t, v\n\t\t\treturn v\n\t\t}\n\t\tlit.Type = t\n",
	},
	{
		// interface{}(3) was a constant of a type that has none.
		file: "fast/convert.go",
		old:  "\trtype := t.ReflectType()\n\tif e.Const() {\n",
		new:  "\trtype := t.ReflectType()\n\tif e.Const() && t.Kind() == r.Interface {\n\t\te.Fun, e.Lit = e.AsX1(), Lit{Type: e.Type}\n\t}\n\tif e.Const() {\n",
	},
	{
		file: "fast/type.go",
		old:  "\tval := c.Expr1(node.X, nil)\n\ttin := val.Type\n\ttout := c.Type(node.Type)\n\trtout := tout.ReflectType()\n",
		new:  "\tval := c.Expr1(node.X, nil)\n\ttin := val.Type\n\tif val.Const() && tin != nil {\n\t\tval = exprX1(tin, val.AsX1())\n\t}\n\ttout := c.Type(node.Type)\n\trtout := tout.ReflectType()\n",
	},
	{
		file: "fast/type.go",
		old:  "\tval := c.Expr1(node.X, nil)\n\ttin := val.Type\n\ttout := c.Type(node.Type)\n\tkout := tout.Kind()\n",
		new:  "\tval := c.Expr1(node.X, nil)\n\ttin := val.Type\n\tif val.Const() && tin != nil {\n\t\tval = exprX1(tin, val.AsX1())\n\t}\n\ttout := c.Type(node.Type)\n\tkout := tout.Kind()\n",
	},
	{
		// An assertion to an interface looked at compiled methods only.
		file: "fast/type.go",
		old:  "\tcase kout == r.Interface:\n\t\tif tout.NumMethod() == 0 {\n",
		new: "\tcase kout == r.Interface && tout.NumMethod() > 0:\n\t\tret = func(env *Env) (xr.Value, []xr.Value) {\n\t\t\tv, t := extractor(fun(env))\n" +
			"\t\t\tv, ok := c.asInterface(v, t, tout)\n\t\t\tif !ok {\n\t\t\t\treturn fail[0], fail\n\t\t\t}\n\t\t\treturn v, []xr.Value{v, True}\n\t\t}\n\n" +
			"\tcase kout == r.Interface:\n\t\tif tout.NumMethod() == 0 {\n",
	},
	{
		file: "fast/type.go",
		old:  "\t\t\t\treturn convert(v, rtout)\n\t\t\t}\n\t\t} else if tin.Implements(tout) {\n",
		new: "\t\t\t\treturn convert(v, rtout)\n\t\t\t}\n\t\t} else if tout.NumMethod() > 0 {\n\t\t\tret = func(env *Env) xr.Value {\n\t\t\t\tv, t := extractor(fun(env))\n" +
			"\t\t\t\tres, ok := c.asInterface(v, t, tout)\n\t\t\t\tif !ok {\n\t\t\t\t\tvar rt r.Type\n\t\t\t\t\tif v.IsValid() {\n\t\t\t\t\t\trt = v.Type()\n\t\t\t\t\t}\n\t\t\t\t\ttypeassertpanic(rt, t, tin, tout)\n\t\t\t\t}\n\t\t\t\treturn res\n\t\t\t}\n" +
			"\t\t} else if tin.Implements(tout) {\n",
	},
	{
		file: "fast/switch_type.go",
		old:  "\t\t} else if t.Kind() == r.Interface && xr.IsEmulatedInterface(t) {\n",
		new:  "\t\t} else if t.Kind() == r.Interface && t.NumMethod() > 0 {\n\t\t\tstmt = c.switchInterface(idx, t, &iend)\n\t\t} else if t.Kind() == r.Interface && xr.IsEmulatedInterface(t) {\n",
	},
	{
		file: "fast/switch_type.go",
		old:  "\t\t\tfor _, rtype := range rtypes {\n\t\t\t\tswitch {\n\t\t\t\tcase vt == rtype:\n",
		new:  "\t\t\tfor i, rtype := range rtypes {\n\t\t\t\tif !c.inCase(v, env.Vals[idx+1], ts[i]) {\n\t\t\t\t\tcontinue\n\t\t\t\t}\n\t\t\t\tswitch {\n\t\t\t\tcase true:\n\t\t\t\tcase vt == rtype:\n",
	},
	{
		// Types of cells that look alike to compiled code were one to the short way.
		file: "fast/switch_type.go",
		old:  "\t\tif ip, found := m[rtype]; found {\n",
		new:  "\t\tif ip, found := m[rtype]; found && typeIn(env.Vals[idx+1]) == nil {\n",
	},
	{
		// Methods of a pointer did not count for a compiled interface.
		file: "fast/interface.go",
		old:  "func (c *Comp) converterToProxy(tin xr.Type, tout xr.Type) func(val xr.Value) xr.Value {\n",
		new:  "func (c *Comp) converterToProxy(tin xr.Type, tout xr.Type) func(val xr.Value) xr.Value {\n\tif c != nil {\n\t\treturn c.toProxy(tin, tout)\n\t}\n",
	},
	{
		// A variable in an interface changed with the variable.
		file: "fast/interface.go",
		old:  "\t\t\treturn xr.ToEmulatedInterface(rtout, obj, tin, obj2methodFuncs)\n",
		new:  "\t\t\treturn xr.ToEmulatedInterface(rtout, unaddressed(obj), tin, obj2methodFuncs)\n",
	},
	{
		// What a value of a struct type was in the cell, an interface{} did not tell.
		file: "fast/interface.go",
		old:  "\t\t\tif v.Kind() == r.Interface {\n\t\t\t\tv = v.Elem() // extract concrete type\n\t\t\t}\n\t\t}\n\t}\n\treturn v, xt\n",
		new:  "\t\t\tif v.Kind() == r.Interface {\n\t\t\t\tv = v.Elem() // extract concrete type\n\t\t\t}\n\t\t}\n\t}\n\tif xt == nil && v.IsValid() {\n\t\txt = xr.CellType(v.Type())\n\t}\n\treturn v, xt\n",
	},
	{
		file: "fast/type.go",
		old:  "\tt.SetUnderlying(underlying)\n",
		new:  "\tt.SetUnderlying(underlying)\n\txr.Brand(t, c != c.FileComp())\n",
	},
	{
		file: "xreflect/struct.go",
		old:  "\t\tname = toExportedFieldName(name, field.Type, field.Anonymous)\n",
		new:  "\t\tname = toExportedFieldName(name, field.Type, field.Anonymous)\n\t\tfield.Tag = hideField(name, field.Tag)\n",
	},
	{
		// The values that were out of range.
		file: "xreflect/value.go",
		old:  "\treturn Value{v.fwd().Index(i)}\n",
		new:  "\trv := v.fwd()\n\tcheckIndex(rv, i)\n\treturn Value{rv.Index(i)}\n",
	},
	{
		file: "xreflect/value.go",
		old:  "\treturn Value{v.fwd().Slice(i, j)}\n",
		new:  "\trv := v.fwd()\n\tcheckSlice(rv, i, j)\n\treturn Value{rv.Slice(i, j)}\n",
	},
	{
		// A nil of a type that refers to itself, or to one that refers to it, had no type.
		file: "xreflect/value.go",
		old:  "\treturn v.fwd().Type()\n",
		new:  "\tif rv := v.fwd(); rv.IsValid() {\n\t\treturn rv.Type()\n\t}\n\treturn v.rv.Type()\n",
	},
	{
		file: "xreflect/value.go",
		old:  "\tif !rv.IsValid() && rt.Kind() == r.Interface {\n",
		new:  "\tif !rv.IsValid() && (rt.Kind() == r.Interface || v.isfwd()) {\n",
	},
	{
		file: "xreflect/value.go",
		old:  "\treturn v.fwd().IsNil()\n",
		new:  "\tif v.isfwd() && v.rv.IsNil() {\n\t\treturn true\n\t}\n\treturn v.fwd().IsNil()\n",
	},
	{
		file: "xreflect/value.go",
		old:  "\tv.rv.Set(x.fwd())\n",
		new:  "\tv.rv.Set(x.filled(v.rv.Type()))\n",
	},
	{
		file: "xreflect/value.go",
		old:  "\tv.fwd().SetMapIndex(key.fwd(), elem.fwd())\n",
		new:  "\tm := v.fwd()\n\tm.SetMapIndex(key.asKey(m.Type().Key()), elem.filled(m.Type().Elem()))\n",
	},
	{
		file: "xreflect/value.go",
		old:  "\tv.fwd().Send(x.fwd())\n",
		new:  "\tch := v.fwd()\n\tch.Send(x.filled(ch.Type().Elem()))\n",
	},
	{
		file: "xreflect/value.go",
		old:  "\trv := ToReflectValues(in)\n\trv = v.fwd().Call(rv)\n",
		new:  "\tf := v.fwd()\n\trv := f.Call(filledArgs(f.Type(), in, false))\n",
	},
	{
		file: "xreflect/value.go",
		old:  "\trv := ToReflectValues(in)\n\trv = v.fwd().CallSlice(rv)\n",
		new:  "\tf := v.fwd()\n\trv := f.CallSlice(filledArgs(f.Type(), in, true))\n",
	},
	{
		// What was wrong with an expression was hidden by what is wrong with it as a type.
		file: "fast/expr.go",
		old:  "\t\t\trecover()\n\t\t\tt = c.Type(expr)\n",
		new:  "\t\t\tcause := recover()\n\t\t\tdefer func() { explain(cause, recover()) }()\n\t\t\tt = c.Type(expr)\n",
	},
	{
		// A type seen through a field of its own was another one, without methods.
		file: "xreflect/type.go",
		old:  "\t\tt := ret.(Type)\n\t\tswitch t.ReflectType() {\n",
		new:  "\t\tt := ret.(Type)\n\t\tif rtype == rTypeOfForward && settled(gtype) {\n\t\t\treturn t\n\t\t}\n\t\tswitch t.ReflectType() {\n",
	},
	{
		file: "xreflect/wrap.go",
		old:  "\tif xt == nil || xt.option == OptDefault {\n\t\treturn rv\n",
		new:  "\tif xt == nil || xt.option == OptDefault && !holdsForward(rv.Type()) {\n\t\treturn rv\n",
	},
	{
		file: "xreflect/wrap.go",
		old:  "\t\t} else if unwrap(tfield).option != OptDefault {\n",
		new:  "\t\t} else {\n",
	},
	{
		// A type that was declared again had methods in one of its places only.
		file: "xreflect/method.go",
		old:  "\tgfunc := t.gmethod(i)\n\tname := gfunc.Name()\n",
		new:  "\tif own := declared(t); own != nil && own != t {\n\t\treturn own.method(i)\n\t}\n\tgfunc := t.gmethod(i)\n\tname := gfunc.Name()\n",
	},
	{
		file: "xreflect/named.go",
		old:  "\tif !ok {\n\t\txerrorf(t, \"AddMethod on unnamed type %v\", t)\n\t}\n",
		new:  "\tif !ok {\n\t\txerrorf(t, \"AddMethod on unnamed type %v\", t)\n\t}\n\tif own := declared(t); own != nil {\n\t\tt = own\n\t}\n",
	},
	{
		file: "xreflect/named.go",
		old:  "\tresizemethodvalues(t)\n\treturn &t.methodvalue\n",
		new:  "\tif own := declared(t); own != nil {\n\t\tt = own\n\t}\n\tresizemethodvalues(t)\n\treturn &t.methodvalue\n",
	},
	{
		// A type that refers to itself referred, once declared again, to what it had been.
		file: "fast/type.go",
		old:  "\t\t\t// reuse t, change only its underlying type\n",
		new:  "\t\t\t// reuse t, change only its underlying type\n\t\t\txr.Undeclare(t)\n",
	},
	{
		file: "fast/type.go",
		old:  "\t\t\tc.Types[name] = oldt\n",
		new:  "\t\t\tc.Types[name] = oldt\n\t\t\txr.Redeclare(oldt)\n",
	},
	{
		// In maps and channels it is what it was in its own declaration.
		file: "xreflect/composite.go",
		old:  "\t\tr.ChanOf(dir, e.approxReflectType()),\n",
		new:  "\t\tr.ChanOf(dir, e.memberType()),\n",
	},
	{
		file: "xreflect/composite.go",
		old:  "\t\tr.MapOf(k.approxReflectType(), e.approxReflectType()),\n",
		new:  "\t\tr.MapOf(k.memberType(), e.memberType()),\n",
	},
	{
		// A remark for its author went to standard output.
		file: "xreflect/method.go",
		old:  "\t\t\tfmt.Printf(\"MissingMethod: comparing %v against expected interface method %v\\n\", tfunc, mtdinterf)\n",
		new:  "",
	},
	{
		file: "xreflect/method.go",
		old:  "\t\"fmt\"\n\t\"go/ast\"\n",
		new:  "\t\"go/ast\"\n",
	},
	{
		// Functions that print, and encoders, saw no methods of types declared in cells.
		file: "fast/call.go",
		old:  "\tvar convs []func(xr.Value) xr.Value\n\tneedconvs := false\n",
		new:  "\tvar convs []func(xr.Value) xr.Value\n\tneedconvs := false\n\tshown, away := c.shownTo(node.Fun), c.runsElsewhere(node.Fun)\n",
	},
	{
		file: "fast/call.go",
		old:  "\t\t\t} else if conv := c.Converter(targ, ti); conv != nil {\n",
		new:  "\t\t\t} else if shown != nil && ti.Kind() == r.Interface && ti.NumMethod() == 0 {\n\t\t\t\tconvs[i] = shower(targ)\n\t\t\t\targs[0].Types[i] = ti\n\t\t\t\tneedconvs = true\n\t\t\t} else if conv := c.Converter(targ, ti); conv != nil {\n",
	},
	{
		file: "fast/call.go",
		old:  "\t\targ := args[i]\n\t\tif arg.Const() {\n",
		new:  "\t\targ := args[i]\n\t\tif shown != nil && ti.Kind() == r.Interface && ti.NumMethod() == 0 && shown(arg) {\n\t\t\tcontinue\n\t\t}\n\t\tif arg.Const() {\n",
	},
	{
		file: "fast/call.go",
		old:  "\t\t\targ.To(c, ti)\n",
		new:  "\t\t\targ.To(c, ti)\n\t\t\tif away && ti.Kind() == r.Func {\n\t\t\t\tguardElsewhere(arg)\n\t\t\t}\n\t\t\tif shown != nil && ellipsis && i == n-1 {\n\t\t\t\tc.showAll(arg)\n\t\t\t}\n",
	},
	{
		// panic(err) threw a value that was no error.
		file: "fast/builtin.go",
		old:  "\targ.To(c, c.TypeOfInterface())\n\tt := c.TypeOf(callPanic)\n",
		new:  "\tif !c.thrown(arg) {\n\t\targ.To(c, c.TypeOfInterface())\n\t}\n\tt := c.TypeOf(callPanic)\n",
	},
	{
		file: "fast/builtin.go",
		old:  "\tbasicTypes := &ir.Comp.Universe.BasicTypes\n\n\t// --------- types ---------\n\tc := ir.Comp\n",
		new:  "\tbasicTypes := &ir.Comp.Universe.BasicTypes\n\n\t// --------- types ---------\n\tc := ir.Comp\n\twhole = c\n",
	},
	{
		// A method value kept the variable that it was taken from, not a copy of it.
		file: "fast/selector.go",
		old:  "\ttfield, fieldindex, addressof, deref := c.computeMethodFieldIndex(t, mtd)\n\trtfield := tfield.ReflectType()\n",
		new:  "\ttfield, fieldindex, addressof, deref := c.computeMethodFieldIndex(t, mtd)\n\trtfield := tfield.ReflectType()\n\tif tfunc.In(0).Kind() != r.Ptr && !addressof {\n\t\tpath, pointer := fieldindex, deref\n\t\tdefer func() { ret = ofCopy(ret, path, pointer) }()\n\t\tfieldindex, deref = nil, false\n\t}\n",
	},
	{
		// Functions wrote a blank parameter, and read a blank result, at the index -1.
		file: "fast/function.go",
		old:  "\t\tbind := c.NewBind(name, VarBind, t.In(i))\n\t\tbinds[i] = bind\n",
		new:  "\t\tif name == \"_\" {\n\t\t\tname = \"\"\n\t\t}\n\t\tbind := c.NewBind(name, VarBind, t.In(i))\n\t\tbinds[i] = bind\n",
	},
	{
		file: "fast/function.go",
		old:  "\t\tbind := c.DeclVar0(name, t.Out(i), nil)\n\t\tbinds[i] = bind\n\t\t// compile the extraction",
		new:  "\t\tif name == \"_\" {\n\t\t\tname = \"\"\n\t\t}\n\t\tbind := c.DeclVar0(name, t.Out(i), nil)\n\t\tbinds[i] = bind\n\t\t// compile the extraction",
	},
	{
		// A package had one name only.
		file: "fast/import.go",
		old:  "\t\t\tpaths[path] = name\n",
		new:  "\t\t\tif _, twice := paths[path]; twice {\n\t\t\t\tc.ImportPackagesOrError(map[string]PackageName{path: name})\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tpaths[path] = name\n",
	},
	{
		// Two blank fields were one name twice.
		file: "xreflect/struct.go",
		old:  "\t\trfields[i] = fields[i].toReflectField(forceExported)\n",
		new:  "\t\trfields[i] = fields[i].toReflectField(forceExported)\n\t\tif fields[i].Name == \"_\" {\n\t\t\trfields[i].Name = fmt.Sprint(StrGensymPrivate, \"_\", i)\n\t\t}\n",
	},
	{
		// A method with a pointer receiver found no address of a number, string or bool.
		file: "fast/selector.go",
		old:  "\tobj2method := c.compileObjGetMethod(e.Type, mtd)\n\tfun := e.AsX1()\n",
		new:  "\te = c.addressed(node, e, mtd)\n\tobj2method := c.compileObjGetMethod(e.Type, mtd)\n\tfun := e.AsX1()\n",
	},
	{
		// Pointers to types other than structs had no methods.
		file: "fast/selector.go",
		old:  "\t\tmtd, mtdn := c.LookupMethod(t, name)\n\t\tswitch mtdn {\n",
		new:  "\t\tt = pointerTo(t)\n\t\tmtd, mtdn := c.LookupMethod(t, name)\n\t\tswitch mtdn {\n",
	},
	{
		// Nor had (*T).Method a meaning.
		file: "fast/selector.go",
		old:  "\tmtd, count := c.LookupMethod(t, node.Sel.Name)\n",
		new:  "\towner := pointerTo(t)\n\tmtd, count := c.LookupMethod(owner, node.Sel.Name)\n",
	},
	{
		file: "fast/selector.go",
		old:  "\treturn c.compileMethodAsFunc(t, mtd)\n",
		new:  "\treturn c.methodExpr(t, mtd)\n",
	},
	{
		// Structs without a name had no methods of embedded fields.
		file: "xreflect/lookup.go",
		old:  "t.kind != r.Interface) {\n\t\treturn\n\t}\n\tv := t.universe\n",
		new:  "t.kind != r.Interface && t.kind != r.Struct) {\n\t\treturn\n\t}\n\tv := t.universe\n",
	},
	{
		file: "xreflect/lookup.go",
		old:  "t.kind != r.Interface) {\n\t\treturn\n\t}\n\tqname := ",
		new:  "t.kind != r.Interface && t.kind != r.Struct) {\n\t\treturn\n\t}\n\tqname := ",
	},
	{
		// What a dot import says was lost where it is not alone.
		file: "fast/compile.go",
		old:  "\t\texprs := make([]*Expr, 0, len(decls))\n\t\tfor _, decl := range decls {\n",
		new:  "\t\texprs := make([]*Expr, 0, len(decls))\n\t\tif e := c.Code.AsExpr(); e != nil {\n\t\t\texprs = append(exprs, e)\n\t\t}\n\t\tfor _, decl := range decls {\n",
	},
	{
		// Empty structs are of one size: they turn into each other.
		file: "xreflect/value.go",
		old:  "\t\trv = rv.Convert(rt)\n",
		new:  "\t\tif sameEmpty(rv, rt) {\n\t\t\treturn Value{r.Zero(rt)}\n\t\t}\n\t\trv = rv.Convert(rt)\n",
	},
	{
		file: "fast/convert.go",
		old:  "\tcase rtin == rtypeOfForward:\n\t\t// conversion from forward-declared type\n",
		new:  "\tcase xr.Empty(rtin) && xr.Empty(rtout):\n\t\treturn func(xr.Value) xr.Value { return xr.ZeroR(rtout) }\n\tcase rtin == rtypeOfForward:\n\t\t// conversion from forward-declared type\n",
	},
	{
		// Integers beyond 64 bits became a part of theirs as floats.
		file: "base/untyped/lit.go",
		old:  "\t\t\t\tn, exact = constant.Uint64Val(src)\n\t\t\t}\n",
		new:  "\t\t\t\tn, exact = constant.Uint64Val(src)\n\t\t\t}\n\t\t\tif !exact && t.Kind() == r.Float32 {\n\t\t\t\tn, _ = constant.Float32Val(src)\n\t\t\t} else if !exact {\n\t\t\t\tn, _ = constant.Float64Val(src)\n\t\t\t}\n",
	},
	{
		// An interface within another was taken for a method of that name.
		file: "go/parser/parser.go",
		old:  "\t\t// embedded interface\n\t\tp.resolve(typ)\n",
		new:  "\t\t// embedded interface\n\t\tp.resolve(typ)\n\t\tidents = nil\n",
	},
	{
		// The methods of an interface were sought in the value in it.
		file: "fast/interface.go",
		old:  "\t\tv, t := extractor(obj)\n\t\treturn xr.ToEmulatedInterface(rtout, v, t, obj2methodFuncs)\n",
		new:  "\t\tif v, ok := c.within(obj, extractor, tout); ok {\n\t\t\treturn v\n\t\t}\n\t\treturn xr.ToEmulatedInterface(rtout, obj, tin, obj2methodFuncs)\n",
	},
	{
		// nil had no type as the key of a map.
		file: "xreflect/value.go",
		old:  "\treturn Value{v.fwd().MapIndex(key.fwd())}\n",
		new:  "\tm := v.fwd()\n\treturn Value{m.MapIndex(key.asKey(m.Type().Key()))}\n",
	},
	{
		// A loop over what was declared before counted in it, and left it one too large.
		file: "fast/range.go",
		old:  "\tflag := true // node.Tok",
		new:  "\tnode = intoItsOwn(node)\n\tflag := true // node.Tok",
	},
}, zeromq: {
	{
		// Jupyter's protocol 5.4 welcomes whoever subscribes.
		file: "pub.go",
		old:  "type pubQReader struct {",
		new:  "var Subscribed func(topic string)\n\ntype pubQReader struct {",
	},
	{
		file: "pub.go",
		old:  "\t\t\t\tr.subscribe(msg)\n",
		new: "\t\t\t\tr.subscribe(msg)\n" +
			"\t\t\t\tif Subscribed != nil && msg.Frames[0][0] == 1 {\n\t\t\t\t\tSubscribed(string(msg.Frames[0][1:]))\n\t\t\t\t}\n",
	},
}}

// patch replaces the only place of a file that reads old.
type patch struct{ file, old, new string }
